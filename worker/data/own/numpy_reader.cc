#include "worker/data/own/numpy_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <utility>

#include "common/text/printable_text.h"
#include "worker/data/file_bytes.h"
#include "worker/data/own/npy_array.h"
#include "worker/data/own/zip_entries.h"

namespace syncopate::worker {
namespace {

// What lies in a file, and what keeps it there.
struct Held {
  std::span<const std::uint8_t> bytes;
  std::shared_ptr<const void> holds;
};

Result<Held> hold(const std::string& path) {
  SYNCOPATE_ASSIGN_OR_RETURN(FileBytes opened, FileBytes::open(path));
  const auto file = std::make_shared<const FileBytes>(std::move(opened));
  return Held{.bytes = file->bytes(), .holds = file};
}

// The arrays of an archive, by their names without ".npy".
class Archive {
 public:
  static Result<Archive> open(const std::string& path) {
    Archive archive;
    SYNCOPATE_ASSIGN_OR_RETURN(archive.file_, hold(path));
    const Result<std::vector<ZipEntry>> entries = zip_entries(archive.file_.bytes);
    if (!entries.ok()) return entries.status().in(path);
    archive.path_ = path;
    for (const ZipEntry& entry : *entries) {
      if (entry.name.ends_with(".npy")) archive.entries_[entry.name.substr(0, entry.name.size() - 4)] = entry;
    }
    if (archive.entries_.empty()) return Status::data_loss("holds no arrays, expected .npy entries").in(path);
    return archive;
  }

  bool has(const std::string& name) const { return entries_.contains(name); }
  std::string names() const {
    std::vector<std::string> names;
    for (const auto& [name, entry] : entries_) names.push_back(name);
    return printable(fmt::format("{}", fmt::join(names, ", ")), 400);
  }
  // The one that is not `name`, if there is exactly one.
  std::string other_than(const std::string& name) const {
    if (entries_.size() != 2) return {};
    return entries_.begin()->first == name ? entries_.rbegin()->first : entries_.begin()->first;
  }

  Result<OwnSamples> samples(const std::string& values, const std::string& target) const {
    SYNCOPATE_ASSIGN_OR_RETURN(const Held of_values, array(values));
    SYNCOPATE_ASSIGN_OR_RETURN(const Held of_target, array(target));
    Result<NumberArray> numbers = npy_values(of_values.bytes, of_values.holds);
    if (!numbers.ok()) return numbers.status().in(place(values));
    Result<TargetColumn> labels = npy_target(of_target.bytes, of_target.holds);
    if (!labels.ok()) return labels.status().in(place(target));
    labels->name = target;
    labels->path = place(target);
    return OwnSamples{.path = place(values), .values = std::move(*numbers), .target = std::move(*labels)};
  }

 private:
  std::string place(const std::string& name) const { return path_ + ": " + name; }

  Result<Held> array(const std::string& name) const {
    const ZipEntry& entry = entries_.at(name);
    if (!entry.deflated) {
      if (const Status sound = check_entry(entry); !sound.ok()) return sound.in(path_);
      return Held{.bytes = entry.stored, .holds = file_.holds};
    }
    Result<std::vector<std::uint8_t>> inflated = inflate_entry(entry);
    if (!inflated.ok()) return inflated.status().in(path_);
    const auto content = std::make_shared<const std::vector<std::uint8_t>>(std::move(*inflated));
    return Held{.bytes = *content, .holds = content};
  }

  std::string path_;
  Held file_;
  std::map<std::string, ZipEntry> entries_;
};

template <std::size_t count>
std::string first_of(const Archive& archive, const std::array<const char*, count>& names) {
  const auto found = std::ranges::find_if(names, [&](const char* name) { return archive.has(name); });
  return found == names.end() ? "" : *found;
}

}  // namespace

Result<OwnFiles> read_npy(const std::string& path, const OwnOptions& options) {
  if (options.target.empty()) {
    return Status::invalid_argument(
        fmt::format("{}: has values alone; --target names the .npy file of the labels", path));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const Held of_values, hold(path));
  SYNCOPATE_ASSIGN_OR_RETURN(const Held of_target, hold(options.target));
  Result<NumberArray> numbers = npy_values(of_values.bytes, of_values.holds);
  if (!numbers.ok()) return numbers.status().in(path);
  Result<TargetColumn> labels = npy_target(of_target.bytes, of_target.holds);
  if (!labels.ok()) return labels.status().in(options.target);
  labels->name = labels->path = options.target;
  return OwnFiles{.samples = {.path = path, .values = std::move(*numbers), .target = std::move(*labels)}};
}

Result<OwnFiles> read_npz(const std::string& path, const OwnOptions& options) {
  SYNCOPATE_ASSIGN_OR_RETURN(const Archive archive, Archive::open(path));
  const auto wrong = [&](const std::string& what) {
    return Status::invalid_argument(fmt::format("{}: {}; it has {}", path, what, archive.names()));
  };
  if (options.target.empty() && archive.has("x_train") && archive.has("y_train")) {
    OwnFiles files;
    SYNCOPATE_ASSIGN_OR_RETURN(files.samples, archive.samples("x_train", "y_train"));
    std::vector<std::string> parts;
    for (const char* part : {"test", "val", "valid", "validation"}) {
      const bool has_values = archive.has(fmt::format("x_{}", part)),
                 has_labels = archive.has(fmt::format("y_{}", part));
      if (has_values != has_labels) return wrong(fmt::format("has only one of x_{0} and y_{0}", part));
      if (has_values) parts.emplace_back(part);
    }
    if (parts.size() > 1) {
      return wrong(fmt::format("{} parts beside x_train could be the test ({}), expected one: save it with that alone",
                               parts.size(), fmt::join(parts, ", ")));
    }
    if (parts.empty()) return files;
    SYNCOPATE_ASSIGN_OR_RETURN(files.test, archive.samples("x_" + parts.front(), "y_" + parts.front()));
    return files;
  }
  const std::string target =
      options.target.empty() ? first_of<4>(archive, {"y", "target", "labels", "label"}) : options.target;
  if (target.empty()) return wrong("no array is called y, target, labels or label; --target names that of the labels");
  if (!archive.has(target)) return wrong(fmt::format("--target={}: there is no such array", target));
  std::string values = first_of<5>(archive, {"x", "X", "data", "images", "features"});
  if (values.empty() || values == target) values = archive.other_than(target);
  if (values.empty())
    return wrong("no array is called x, X, data, images or features, and several could be the values");
  OwnFiles files;
  SYNCOPATE_ASSIGN_OR_RETURN(files.samples, archive.samples(values, target));
  return files;
}

}  // namespace syncopate::worker
