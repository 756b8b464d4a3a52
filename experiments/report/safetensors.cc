#include "experiments/report/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "common/whole_file.h"

namespace syncopate::experiments {
namespace {

static_assert(std::endian::native == std::endian::little, "values are written as they lie in memory");

using Json = nlohmann::ordered_json;
using Tensor = SafetensorsFile::Tensor;

constexpr std::size_t kLengthBytes = 8;
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit

Status corrupt(std::string message) { return Status(Code::kDataLoss, std::move(message)); }

std::vector<TensorForm> forms_of(const ParamLayout& layout, std::span<const WholeNumbers> whole_numbers) {
  std::vector<TensorForm> forms;
  for (const WholeNumbers& numbers : whole_numbers) {
    forms.push_back({numbers.name, {static_cast<std::int64_t>(numbers.values.size())}, true});
  }
  for (const TensorSpec& tensor : layout.tensors()) forms.push_back({tensor.name, tensor.shape});
  return forms;
}

// The product of the dimensions in bytes; nothing if it is no product of at most `limit`.
bool bytes_of_shape(const Json& shape, std::size_t element_bytes, std::uint64_t limit,
                    std::vector<std::int64_t>& dimensions, std::uint64_t& bytes) {
  bytes = element_bytes;
  if (!shape.is_array()) return false;
  for (const Json& dimension : shape) {
    if (!dimension.is_number_unsigned()) return false;
    const auto length = dimension.get<std::uint64_t>();
    if (length > limit || (length != 0 && bytes > limit / length)) return false;
    bytes *= length;
    dimensions.push_back(static_cast<std::int64_t>(length));
  }
  return true;
}

struct Placed {
  Tensor tensor;
  bool is_whole = false;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

Result<Placed> place(const std::string& name, const Json& entry, std::uint64_t data_bytes) {
  const auto wrong = [&](const char* what) { return corrupt(fmt::format("tensor '{}': {}", name, what)); };
  if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape") || !entry.contains("data_offsets")) {
    return wrong("must have dtype, shape and data_offsets");
  }
  const bool is_whole = entry["dtype"] == "I64";
  if (!is_whole && entry["dtype"] != "F32") return wrong("dtype must be F32 or I64");
  const Json& offsets = entry["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned()) {
    return wrong("data_offsets must be two numbers");
  }
  Placed placed{{name, {}, {}, {}}, is_whole, offsets[0].get<std::uint64_t>(), offsets[1].get<std::uint64_t>()};
  if (placed.begin > placed.end || placed.end > data_bytes) return wrong("data_offsets lie outside the file");
  std::uint64_t bytes = 0;
  if (!bytes_of_shape(entry["shape"], is_whole ? sizeof(std::int64_t) : sizeof(float), data_bytes, placed.tensor.shape,
                      bytes) ||
      bytes != placed.end - placed.begin) {
    return wrong("shape and data_offsets differ in size");
  }
  return placed;
}

Status read_metadata(const Json& entry, std::map<std::string, std::string>& metadata) {
  if (!entry.is_object()) return corrupt("__metadata__ must map texts to texts");
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_string()) return corrupt(fmt::format("__metadata__: '{}' must be a text", key));
    metadata[key] = value.get<std::string>();
  }
  return {};
}

template <typename T>
void copy_into(std::vector<T>& values, std::string_view bytes) {
  values.resize(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
}

// The values of all tensors, once it is known that they cover the data without holes or overlap.
Result<std::vector<Tensor>> load(std::vector<Placed> placed, std::string_view data) {
  std::ranges::stable_sort(placed, {}, [](const Placed& tensor) { return std::pair(tensor.begin, tensor.end); });
  std::vector<Tensor> tensors;
  std::uint64_t expected = 0;
  for (Placed& next : placed) {
    if (next.begin != expected)
      return corrupt(fmt::format("tensor '{}': overlaps another, or leaves a hole", next.tensor.name));
    expected = next.end;
    const std::string_view bytes = data.substr(next.begin, next.end - next.begin);
    next.is_whole ? copy_into(next.tensor.whole_numbers, bytes) : copy_into(next.tensor.values, bytes);
    tensors.push_back(std::move(next.tensor));
  }
  if (expected != data.size()) return corrupt(fmt::format("{} bytes belong to no tensor", data.size() - expected));
  return tensors;
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
  text.resize((text.size() + kLengthBytes - 1) / kLengthBytes * kLengthBytes, ' ');
  const std::uint64_t length = text.size();
  std::string bytes(kLengthBytes, '\0');
  std::memcpy(bytes.data(), &length, kLengthBytes);
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

Result<SafetensorsFile> from_safetensors(std::string_view bytes) {
  std::uint64_t length = 0;
  if (bytes.size() < kLengthBytes) return corrupt(fmt::format("{} bytes are too few for safetensors", bytes.size()));
  std::memcpy(&length, bytes.data(), kLengthBytes);
  if (length > kMaxHeaderBytes || length > bytes.size() - kLengthBytes) {
    return corrupt(fmt::format("header of {} bytes does not fit in {} bytes", length, bytes.size() - kLengthBytes));
  }
  const std::string_view data = bytes.substr(kLengthBytes + length);
  const Json header = Json::parse(bytes.substr(kLengthBytes, length), nullptr, false);
  if (!header.is_object()) return corrupt("header is not a JSON object");
  SafetensorsFile file;
  std::vector<Placed> placed;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      SYNCOPATE_RETURN_IF_ERROR(read_metadata(entry, file.metadata));
      continue;
    }
    Result<Placed> tensor = place(name, entry, data.size());
    if (!tensor.ok()) return tensor.status();
    placed.push_back(std::move(*tensor));
  }
  Result<std::vector<Tensor>> tensors = load(std::move(placed), data);
  if (!tensors.ok()) return tensors.status();
  file.tensors = std::move(*tensors);
  return file;
}

Status write_safetensors(const std::string& path, const ParamLayout& layout, std::span<const float> weights,
                         const std::map<std::string, std::string>& metadata,
                         std::span<const WholeNumbers> whole_numbers) {
  return write_whole_file(path, to_safetensors(layout, weights, metadata, whole_numbers));
}

Result<SafetensorsFile> read_safetensors(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  if (!file || !(bytes << file.rdbuf())) {
    return Status(Code::kNotFound, fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  }
  Result<SafetensorsFile> contents = from_safetensors(bytes.str());
  if (!contents.ok()) return contents.status().in(path);
  return contents;
}

}  // namespace syncopate::experiments
