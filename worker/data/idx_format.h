// IDX, the format of MNIST and Fashion-MNIST (Y. LeCun, C. Cortes, C. Burges, "The MNIST database"): big-endian 32-bit
// words, followed by one unsigned byte per value.
//
//   images:  0x00000803, count, height, width, then count · height · width pixels, row by row
//   labels:  0x00000801, count, then count labels
#pragma once

#include <cstdint>
#include <span>

namespace syncopate::worker {

inline constexpr std::uint32_t kIdxImagesMagic = 0x00000803;
inline constexpr std::uint32_t kIdxLabelsMagic = 0x00000801;
inline constexpr std::size_t kIdxImagesHeaderBytes = 16;
inline constexpr std::size_t kIdxLabelsHeaderBytes = 8;

// The four files of a data set; each may also end in ".gz".
inline constexpr const char* kIdxTrainImages = "train-images-idx3-ubyte";
inline constexpr const char* kIdxTrainLabels = "train-labels-idx1-ubyte";
inline constexpr const char* kIdxTestImages = "t10k-images-idx3-ubyte";
inline constexpr const char* kIdxTestLabels = "t10k-labels-idx1-ubyte";

// Returns word `i` of a header that has at least 4·(i+1) bytes.
inline std::uint32_t read_idx_word(std::span<const std::uint8_t> header, std::size_t i) {
  const auto byte = [&](std::size_t b) { return static_cast<std::uint32_t>(header[4 * i + b]); };
  return byte(0) << 24 | byte(1) << 16 | byte(2) << 8 | byte(3);
}

inline void write_idx_word(std::span<std::uint8_t> header, std::size_t i, std::uint32_t word) {
  for (std::size_t b = 0; b < 4; ++b) header[4 * i + b] = static_cast<std::uint8_t>(word >> (24 - 8 * b));
}

}  // namespace syncopate::worker
