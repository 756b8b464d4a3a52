#include "worker/data/own/open_own.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <utility>

#include "worker/data/own/csv_reader.h"
#include "worker/data/own/idx_arrays.h"
#include "worker/data/own/image_folder.h"
#include "worker/data/own/numpy_reader.h"
#include "worker/data/own/own_dataset.h"

namespace syncopate::worker {
namespace {

namespace fs = std::filesystem;

struct Format {
  bool (*is_it)(std::string_view name);  // of a file, without ".gz"
  Result<OwnFiles> (*read)(const std::string& path, const OwnOptions& options);
  bool may_be_gz;
  bool takes_test_data;  // another file of the same format is the test part
};

constexpr std::array kFormats{
    Format{[](std::string_view name) { return name.ends_with(".csv") || name.ends_with(".tsv"); }, read_csv, true,
           true},
    Format{[](std::string_view name) { return name.ends_with(".npz"); }, read_npz, false, true},
    Format{[](std::string_view name) { return name.ends_with(".npy"); }, read_npy, true, false},
    Format{[](std::string_view name) { return name.find("-idx") != name.npos || name.ends_with(".idx"); }, read_idx,
           true, false},
};

// Returns the format of a file of that name; null: none has it.
const Format* format_of(std::string_view path) {
  std::string_view name = path.substr(path.find_last_of('/') + 1);
  const bool is_gz = name.ends_with(".gz");
  if (is_gz) name.remove_suffix(3);
  const auto found = std::ranges::find_if(
      kFormats, [&](const Format& format) { return format.is_it(name) && (format.may_be_gz || !is_gz); });
  return found == kFormats.end() ? nullptr : &*found;
}

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

Result<OwnFiles> read_folder(const std::string& path, const OwnOptions& options) {
  SYNCOPATE_ASSIGN_OR_RETURN(const bool has_idx, has_idx_files(path));
  return has_idx ? read_idx_folder(path, options) : read_image_folder(path, options);
}

Status unknown(const std::string& path) {
  return Status::invalid_argument(
      fmt::format("{}: no kind of file that is read, and no folder: must be {}", path, kOwnFormats));
}

Result<OwnFiles> read_any(const std::string& path, const OwnOptions& options) {
  if (is_folder(path)) return read_folder(path, options);
  std::error_code ignored;
  if (path.ends_with('/') || !fs::exists(path, ignored)) {
    return Status::not_found(fmt::format("{}: there is no such {}", path, path.ends_with('/') ? "folder" : "file"));
  }
  const Format* const format = format_of(path);
  return format != nullptr ? format->read(path, options) : unknown(path);
}

// The samples of another file, or of another folder, as the test part.
Status add_test_data(const std::string& path, const OwnOptions& options, OwnFiles& files) {
  const auto refused = [&](const std::string& why) {
    return Status::invalid_argument(fmt::format("--test-data={}: {}", options.test_data, why));
  };
  if (files.test) return refused(fmt::format("{} has a test part of its own; leave it out", path));
  const Format* const format = is_folder(path) ? nullptr : format_of(path);
  if (format != nullptr && !format->takes_test_data) {
    return refused(
        fmt::format("{} has its labels in another file; put both parts into one .npz, as x_train, y_train, "
                    "x_test and y_test, or use --test-fraction",
                    path));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(OwnFiles test, read_any(options.test_data, options));
  if (test.test) return refused("has a training and a test part");
  files.test = std::move(test.samples);
  return {};
}

}  // namespace

bool is_own_data(const std::string& name) { return name.find('/') != std::string::npos || format_of(name) != nullptr; }

Status check_own_name(const std::string& name) {
  const std::size_t dot = name.find_last_of("./");
  const bool has_ending = dot != std::string::npos && name[dot] == '.' && dot + 1 < name.size();
  if (format_of(name) != nullptr || !has_ending || is_folder(name)) return {};
  return unknown(name);
}

Result<DatasetPair> open_own_data(const std::string& path, const OwnOptions& options, std::uint64_t seed) {
  SYNCOPATE_ASSIGN_OR_RETURN(OwnFiles files, read_any(path, options));
  if (!options.test_data.empty()) SYNCOPATE_RETURN_IF_ERROR(add_test_data(path, options, files));
  return make_own_dataset(std::move(files), options, seed);
}

}  // namespace syncopate::worker
