#include "experiments/checkpoint/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <limits>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "common/os/regular_file.h"
#include "common/os/whole_file.h"
#include "common/text/printable_text.h"

namespace syncopate::experiments {
namespace {

static_assert(std::endian::native == std::endian::little, "values are written as they lie in memory");

using Json = nlohmann::ordered_json;
// For reading: names are kept in a map, so that a header with a million of them takes little time.
using ReadJson = nlohmann::json;
using Tensor = SafetensorsFile::Tensor;

constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit

std::vector<TensorForm> forms_of(const ParamLayout& layout, std::span<const WholeNumbers> whole_numbers) {
  std::vector<TensorForm> forms;
  for (const WholeNumbers& numbers : whole_numbers) {
    forms.push_back({numbers.name, {static_cast<std::int64_t>(numbers.values.size())}, true});
  }
  for (const TensorSpec& tensor : layout.tensors()) forms.push_back({tensor.name, tensor.shape});
  return forms;
}

// Computes the product of the dimensions in bytes; fails if it exceeds `limit`. An empty tensor may have any width: a
// table without rows.
bool bytes_of_shape(const ReadJson& shape, std::size_t element_bytes, std::uint64_t limit,
                    std::vector<std::int64_t>& dimensions, std::uint64_t& bytes) {
  constexpr std::uint64_t kMostLength = std::uint64_t{1} << 48;
  if (!shape.is_array()) return false;
  for (const ReadJson& dimension : shape) {
    if (!dimension.is_number_unsigned() || dimension.get<std::uint64_t>() > kMostLength) return false;
    dimensions.push_back(dimension.get<std::int64_t>());
  }
  bytes = std::ranges::count(dimensions, 0) > 0 ? 0 : element_bytes;
  for (const std::int64_t dimension : dimensions) {
    const auto length = static_cast<std::uint64_t>(dimension);
    if (bytes != 0 && bytes > limit / length) return false;
    bytes *= length;
  }
  return bytes <= limit;
}

Result<PlacedTensor> place(const std::string& name, const ReadJson& entry, std::uint64_t data_bytes) {
  const auto wrong = [&](const char* what) {
    return Status::data_loss(fmt::format("tensor '{}': {}", printable(name), what));
  };
  if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape") || !entry.contains("data_offsets")) {
    return wrong("must have dtype, shape and data_offsets");
  }
  PlacedTensor placed{.name = name, .shape = {}, .is_whole = entry["dtype"] == "I64"};
  if (!placed.is_whole && entry["dtype"] != "F32") return wrong("dtype must be F32 or I64");
  const ReadJson& offsets = entry["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned()) {
    return wrong("data_offsets must be two numbers");
  }
  const auto begin = offsets[0].get<std::uint64_t>(), end = offsets[1].get<std::uint64_t>();
  if (begin > end || end > data_bytes) return wrong("data_offsets lie outside the file");
  const std::size_t element = placed.is_whole ? sizeof(std::int64_t) : sizeof(float);
  if (!bytes_of_shape(entry["shape"], element, data_bytes, placed.shape, placed.bytes) || placed.bytes != end - begin) {
    return wrong("shape and data_offsets differ in size");
  }
  placed.offset = begin;
  return placed;
}

Status read_metadata(const ReadJson& entry, std::map<std::string, std::string>& metadata) {
  if (!entry.is_object()) return Status::data_loss("__metadata__ must map texts to texts");
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_string()) return Status::data_loss(fmt::format("__metadata__: '{}' must be a text", printable(key)));
    metadata[key] = value.get<std::string>();
  }
  return {};
}

// Sorts the tensors and checks that they cover the data without holes or overlap.
Status check_cover(std::vector<PlacedTensor>& tensors, std::uint64_t data_bytes) {
  std::ranges::stable_sort(
      tensors, {}, [](const PlacedTensor& tensor) { return std::pair(tensor.offset, tensor.offset + tensor.bytes); });
  std::uint64_t expected = 0;
  for (const PlacedTensor& next : tensors) {
    if (next.offset != expected) {
      return Status::data_loss(fmt::format("tensor '{}': overlaps another, or leaves a hole", printable(next.name)));
    }
    expected += next.bytes;
  }
  if (expected != data_bytes)
    return Status::data_loss(fmt::format("{} bytes belong to no tensor", data_bytes - expected));
  return {};
}

template <typename T>
void copy_into(std::vector<T>& values, std::string_view bytes) {
  values.resize(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
}

}  // namespace

std::size_t TensorForm::bytes() const {
  std::size_t bytes = is_whole ? sizeof(std::int64_t) : sizeof(float);
  for (const std::int64_t length : shape) bytes *= static_cast<std::size_t>(length);
  return bytes;
}

std::string safetensors_header(std::span<const TensorForm> tensors,
                               const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::size_t offset = 0;
  for (const TensorForm& tensor : tensors) {
    const std::size_t end = offset + tensor.bytes();
    header[tensor.name] = {
        {"dtype", tensor.is_whole ? "I64" : "F32"}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + kSafetensorsLengthBytes - 1) / kSafetensorsLengthBytes * kSafetensorsLengthBytes, ' ');
  const std::uint64_t length = text.size();
  std::string bytes(kSafetensorsLengthBytes, '\0');
  std::memcpy(bytes.data(), &length, kSafetensorsLengthBytes);
  return bytes + text;
}

std::string to_safetensors(const ParamLayout& layout, std::span<const float> weights,
                           const std::map<std::string, std::string>& metadata,
                           std::span<const WholeNumbers> whole_numbers) {
  assert(weights.size() == layout.size());
  std::string bytes = safetensors_header(forms_of(layout, whole_numbers), metadata);
  bytes.reserve(bytes.size() + weights.size_bytes());
  for (const WholeNumbers& numbers : whole_numbers) {
    bytes.append(reinterpret_cast<const char*>(numbers.values.data()), numbers.values.size() * sizeof(std::int64_t));
  }
  for (const TensorSpec& tensor : layout.tensors()) {
    const std::span<const float> values = slice(weights, tensor.range);
    bytes.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  }
  return bytes;
}

Result<std::uint64_t> safetensors_header_bytes(std::string_view first_bytes, std::uint64_t file_bytes) {
  if (first_bytes.size() < kSafetensorsLengthBytes || file_bytes < kSafetensorsLengthBytes) {
    return Status::data_loss(fmt::format("{} bytes are too few for safetensors", file_bytes));
  }
  std::uint64_t length = 0;
  std::memcpy(&length, first_bytes.data(), kSafetensorsLengthBytes);
  const std::uint64_t behind = file_bytes - kSafetensorsLengthBytes;
  if (length <= kMaxHeaderBytes && length <= behind) return length;
  return Status::data_loss(
      fmt::format("no safetensors, or cut off: a header of {} bytes does not fit in {} bytes", length, behind));
}

Result<SafetensorsHeader> parse_safetensors_header(std::string_view text, std::uint64_t data_bytes) {
  // A parsed object has each name once; the text may not.
  std::set<std::string> names;
  std::optional<std::string> repeated;
  const auto see = [&](int depth, ReadJson::parse_event_t event, ReadJson& value) {
    const bool is_name = event == ReadJson::parse_event_t::key && depth == 1;
    if (is_name && !names.insert(value.get<std::string>()).second && !repeated) repeated = value.get<std::string>();
    return true;
  };
  const ReadJson json = ReadJson::parse(text, see, false);
  if (!json.is_object()) return Status::data_loss("header is not a JSON object");
  if (repeated) return Status::data_loss(fmt::format("tensor '{}': is named twice", printable(*repeated)));
  SafetensorsHeader header;
  for (const auto& [name, entry] : json.items()) {
    if (name == "__metadata__") {
      SYNCOPATE_RETURN_IF_ERROR(read_metadata(entry, header.metadata));
      continue;
    }
    SYNCOPATE_ASSIGN_OR_RETURN(PlacedTensor tensor, place(name, entry, data_bytes));
    header.tensors.push_back(std::move(tensor));
  }
  SYNCOPATE_RETURN_IF_ERROR(check_cover(header.tensors, data_bytes));
  return header;
}

Result<SafetensorsFile> from_safetensors(std::string_view bytes) try {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::uint64_t length, safetensors_header_bytes(bytes, bytes.size()));
  const std::string_view data = bytes.substr(kSafetensorsLengthBytes + length);
  SYNCOPATE_ASSIGN_OR_RETURN(SafetensorsHeader header,
                             parse_safetensors_header(bytes.substr(kSafetensorsLengthBytes, length), data.size()));
  SafetensorsFile file{.tensors = {}, .metadata = std::move(header.metadata)};
  for (PlacedTensor& placed : header.tensors) {
    Tensor& tensor = file.tensors.emplace_back();
    tensor.name = std::move(placed.name);
    tensor.shape = std::move(placed.shape);
    const std::string_view values = data.substr(placed.offset, placed.bytes);
    placed.is_whole ? copy_into(tensor.whole_numbers, values) : copy_into(tensor.values, values);
  }
  return file;
} catch (const std::bad_alloc&) {
  return Status::resource_exhausted(fmt::format("no memory for the contents of {} bytes", bytes.size()));
}

Status write_safetensors(const std::string& path, const ParamLayout& layout, std::span<const float> weights,
                         const std::map<std::string, std::string>& metadata,
                         std::span<const WholeNumbers> whole_numbers) {
  return write_whole_file(path, to_safetensors(layout, weights, metadata, whole_numbers));
}

Result<SafetensorsFile> read_safetensors(const std::string& path) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string bytes,
                             read_regular_file(path, std::numeric_limits<std::uint64_t>::max()));
  Result<SafetensorsFile> contents = from_safetensors(bytes);
  if (!contents.ok()) return contents.status().in(path);
  return contents;
}

}  // namespace syncopate::experiments
