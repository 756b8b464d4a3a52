// Weights in the safetensors format, which Python can read (safetensors.numpy.load_file, or by hand):
//
//   8 bytes      N, the length of the header, little-endian
//   N bytes      JSON: {"__metadata__": {text: text},
//                       NAME: {"dtype": "F32", "shape": […], "data_offsets": [from, to]}, …}
//   the rest     the tensors' values, little-endian, row-major; offsets count from here, without holes
//
// The header is padded with blanks so that the values begin at a multiple of eight bytes.
//
// Source: the format's description in the safetensors project's README, "Format".
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/param_layout.h"
#include "common/status.h"

namespace syncopate::experiments {

struct SafetensorsFile {
  struct Tensor {
    std::string name;
    std::vector<std::int64_t> shape;
    std::vector<float> values;                // F32 only
    std::vector<std::int64_t> whole_numbers;  // I64 only
  };
  std::vector<Tensor> tensors;  // in the order of their values
  std::map<std::string, std::string> metadata;
};

// Where a header places a tensor: its values are `bytes` bytes, `offset` bytes after the header.
struct PlacedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  bool is_whole = false;  // whether the type is I64; else F32
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;

  std::uint64_t elements() const { return bytes / (is_whole ? sizeof(std::int64_t) : sizeof(float)); }
};

struct SafetensorsHeader {
  std::vector<PlacedTensor> tensors;  // in the order of their values, which follow each other without holes
  std::map<std::string, std::string> metadata;
};

// The bytes before the header that hold its length. The function returns that length, which must fit in a file of
// `file_bytes`; it fails with data loss.
inline constexpr std::size_t kSafetensorsLengthBytes = 8;
Result<std::uint64_t> safetensors_header_bytes(std::string_view first_bytes, std::uint64_t file_bytes);
// Parses a header, without its length, of a file that has `data_bytes` after it. Checks that each tensor's type is
// known, that its bytes agree with its shape, and that the tensors fill the data exactly. Fails with data loss.
Result<SafetensorsHeader> parse_safetensors_header(std::string_view header, std::uint64_t data_bytes);

// The header's description of a tensor: its type is F32, or I64 if it holds whole numbers.
struct TensorForm {
  std::string name;
  std::vector<std::int64_t> shape;
  bool is_whole = false;

  std::size_t bytes() const;
};

// Returns the bytes before the values, which follow in the order of `tensors`, without holes.
std::string safetensors_header(std::span<const TensorForm> tensors, const std::map<std::string, std::string>& metadata);

// A tensor of integers with one dimension.
struct WholeNumbers {
  std::string name;
  std::vector<std::int64_t> values;
};

// Returns the file's bytes: the whole numbers (I64), then the layout's tensors in its order, without the padding
// between them. `weights` is an arena of layout.size() floats.
std::string to_safetensors(const ParamLayout& layout, std::span<const float> weights,
                           const std::map<std::string, std::string>& metadata,
                           std::span<const WholeNumbers> whole_numbers = {});

// Parses a file. Checks every length, type and offset before it is used. Reads only F32 and I64. Fails with data loss,
// and with resource exhausted if memory runs out.
Result<SafetensorsFile> from_safetensors(std::string_view bytes);

// Do the same to and from a file, which is written completely or not at all. Messages begin with the path.
Status write_safetensors(const std::string& path, const ParamLayout& layout, std::span<const float> weights,
                         const std::map<std::string, std::string>& metadata,
                         std::span<const WholeNumbers> whole_numbers = {});
Result<SafetensorsFile> read_safetensors(const std::string& path);

}  // namespace syncopate::experiments
