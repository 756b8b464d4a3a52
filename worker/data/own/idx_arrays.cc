#include "worker/data/own/idx_arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <utility>

#include "worker/data/file_bytes.h"
#include "worker/data/idx_format.h"
#include "worker/data/own/npy_array.h"

namespace syncopate::worker {
namespace {

namespace fs = std::filesystem;

std::optional<NumberType> type_of_code(std::uint8_t code) {
  switch (code) {
    case 0x08:
      return NumberType::kUint8;
    case 0x09:
      return NumberType::kInt8;
    case 0x0B:
      return NumberType::kInt16;
    case 0x0C:
      return NumberType::kInt32;
    case 0x0D:
      return NumberType::kFloat;
    case 0x0E:
      return NumberType::kDouble;
    default:
      return std::nullopt;
  }
}

// The magic word is two zeros, the type of numbers, and the number of dimensions, whose lengths follow.
Result<NumberArray> read_array(const std::string& path) {
  SYNCOPATE_ASSIGN_OR_RETURN(FileBytes opened, FileBytes::open(path));
  const auto file = std::make_shared<const FileBytes>(std::move(opened));
  const std::span<const std::uint8_t> bytes = file->bytes();
  if (bytes.size() < 8) return Status::data_loss(fmt::format("truncated: {} bytes", bytes.size())).in(path);
  const std::optional<NumberType> type = type_of_code(bytes[2]);
  const std::size_t dimensions = bytes[3], header = 4 + 4 * dimensions;
  if (bytes[0] != 0 || bytes[1] != 0 || !type || dimensions < 1 || dimensions > 4) {
    return Status::data_loss(
               fmt::format("magic 0x{:08x}, expected 0x0000TTDD: type TT of 08, 09, 0b, 0c, 0d or 0e, and 1 to 4 "
                           "dimensions DD",
                           read_idx_word(bytes, 0)))
        .in(path);
  }
  if (bytes.size() < header) {
    return Status::data_loss(fmt::format("truncated: {} bytes, the header alone has {}", bytes.size(), header))
        .in(path);
  }
  std::vector<std::int64_t> lengths;
  for (std::size_t i = 0; i < dimensions; ++i) lengths.push_back(read_idx_word(bytes, 1 + i));
  Result<NumberArray> array = NumberArray::create(bytes.subspan(header), file, *type, true, lengths);
  return array.ok() ? std::move(array) : array.status().in(path);
}

Result<OwnSamples> read_pair(const std::string& values_path, const std::string& labels_path) {
  SYNCOPATE_ASSIGN_OR_RETURN(NumberArray values, read_array(values_path));
  SYNCOPATE_ASSIGN_OR_RETURN(const NumberArray labels, read_array(labels_path));
  Result<TargetColumn> target = target_of_numbers(labels);
  if (!target.ok()) return target.status().in(labels_path);
  target->name = target->path = labels_path;
  return OwnSamples{.path = values_path, .values = std::move(values), .target = std::move(*target)};
}

// Returns the one file whose name contains one of `parts`; empty: none has.
Result<std::string> file_with(const std::string& folder, std::initializer_list<const char*> parts) {
  std::vector<std::string> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
    if (std::ranges::any_of(parts, has)) found.push_back(entry.path().string());
  }
  if (error) return Status::not_found(fmt::format("{}: cannot be read: {}", folder, error.message()));
  if (found.size() > 1) {
    std::ranges::sort(found);
    return Status::invalid_argument(fmt::format("{}: has {} and {}, expected one of them", folder, found[0], found[1]));
  }
  return found.empty() ? std::string() : found.front();
}

}  // namespace

Result<OwnFiles> read_idx(const std::string& path, const OwnOptions& options) {
  if (options.target.empty()) {
    return Status::invalid_argument(
        fmt::format("{}: has values alone; --target names the IDX file of the labels", path));
  }
  OwnFiles files;
  SYNCOPATE_ASSIGN_OR_RETURN(files.samples, read_pair(path, options.target));
  return files;
}

Result<bool> has_idx_files(const std::string& folder) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string images, file_with(folder, {"train-images-idx"}));
  return !images.empty();
}

Result<OwnFiles> read_idx_folder(const std::string& folder, const OwnOptions& options) {
  if (!options.target.empty()) {
    return Status::invalid_argument(
        fmt::format("--target={}: {} has its labels in files of its own; leave it out", options.target, folder));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string images, file_with(folder, {"train-images-idx"}));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string labels, file_with(folder, {"train-labels-idx"}));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string test, file_with(folder, {"t10k-images-idx", "test-images-idx"}));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string test_labels, file_with(folder, {"t10k-labels-idx", "test-labels-idx"}));
  if (images.empty() || labels.empty() || test.empty() != test_labels.empty()) {
    return Status::not_found(
        fmt::format("{}: has not all of *train-images-idx*, *train-labels-idx*, *test-images-idx* and "
                    "*test-labels-idx* (test may be t10k, and both may be missing)",
                    folder));
  }
  OwnFiles files;
  SYNCOPATE_ASSIGN_OR_RETURN(files.samples, read_pair(images, labels));
  if (test.empty()) return files;
  SYNCOPATE_ASSIGN_OR_RETURN(files.test, read_pair(test, test_labels));
  return files;
}

}  // namespace syncopate::worker
