// Codec: encodes float32 values in fewer bytes, and decodes them. Pure: no input or output, no threads, no time.
//
//   codec    bytes of n values                decoded value
//   none     4n                               the same bits
//   fp16     2n                               rounded to nearest even; from 65520 on infinite, below 2^-25 zero
//   bf16     2n                               rounded to nearest even
//   int8     n + 4·ceil(n/1024)               nearest of 255 multiples of max|x|/127 of its chunk of 1024, or, rounded
//                                             stochastically, one of the two around it, drawn from the key
//   top-k    8k, k = ceil(ratio·n)            the k largest by magnitude, exact; the others zero
//   random-k 4k                               k elements drawn from the key, exact; the others zero
//   sign     n/8 + 4·ceil(n/1024), in words   ± the mean |x| of its chunk of 1024; zeros count as positive
//
// Padding between tensors is no value: it is neither counted nor sent, and decodes to zero. In int8 and sign each
// tensor begins a chunk, with a scale of its own. Numbers are little endian. The length depends only on the number of
// elements and on where tensors lie among them, so that both sides know it beforehand. Top-k with a warm-up
// (codec_config.h) has one length for each of its epochs; the sender's epoch decides, and a receiver accepts all of
// these lengths.
//
// Diverged gradients remain visible: NaN and infinities are preserved in none, fp16, bf16, top-k and, if they are
// drawn, random-k; in int8 and sign, a chunk that holds one becomes NaN throughout.
//
// Bytes and values are the same on every processor, whether or not denormals are flushed, except for values that are
// denormal themselves. For sources see README.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/codec/codec_config.h"
#include "common/status.h"
#include "common/tensor_ranges.h"

namespace syncopate {

// Holds only its configuration, the epoch, and scratch memory, which grows to what encode() needs. One thread at a
// time.
class Codec {
 public:
  // `config` may be of any kind but PowerSGD, which works on matrices and takes two rounds: power_sgd.h. `tensors` are
  // those of the arena whose values are encoded; empty: it is one tensor.
  explicit Codec(const CodecConfig& config, TensorRanges tensors = {});

  const CodecConfig& config() const { return config_; }
  const TensorRanges& tensors() const { return tensors_; }

  // Sets the epoch of the following encode() calls, 0 at first. It determines the ratio of a top-k that warms up.
  void begin_epoch(std::int64_t epoch) { epoch_ = epoch; }

  // Here and below, `begin` is the place in the arena of the first of the values.
  // encoded_size returns the exact bytes of `elements` values in this epoch, largest_size the most in any epoch.
  // Requires less than 2^32 elements.
  std::size_t encoded_size(std::size_t elements, std::size_t begin = 0) const;
  std::size_t largest_size(std::size_t elements, std::size_t begin = 0) const;
  // Returns the first epoch in which `elements` values have `bytes` bytes, if there is one.
  std::optional<std::int64_t> epoch_of(std::size_t bytes, std::size_t elements, std::size_t begin = 0) const;

  // Fills `out`, of encoded_size(values.size(), begin) bytes. `key` names the values among all that a run encodes, for
  // example by their place and step. Random-k draws its elements from the key, so the receiver must know it; stochastic
  // rounding draws from it, too.
  void encode(std::span<const float> values, std::uint64_t key, std::span<std::byte> out, std::size_t begin = 0);

  // Overwrites every element of `out` with the decoded value. Fails with data loss, and leaves `out` unchanged, if
  // `encoded` is not what encode() makes of out.size() values in some epoch: another length, indices that do not ascend
  // or are out of range, scales that are negative or infinite. Bytes may come from anywhere, at any alignment. If they
  // change meanwhile, as in memory that their sender can write, the values are undefined, but nothing except `out` is
  // written.
  Status decode(std::span<const std::byte> encoded, std::uint64_t key, std::span<float> out,
                std::size_t begin = 0) const;

  // sum += decoded, and sum -= decoded, with the same checks. Top-k and random-k touch only the elements that were
  // sent; none touches padding.
  Status add_decoded(std::span<const std::byte> encoded, std::uint64_t key, std::span<float> sum,
                     std::size_t begin = 0) const;
  Status subtract_decoded(std::span<const std::byte> encoded, std::uint64_t key, std::span<float> sum,
                          std::size_t begin = 0) const;

 private:
  CodecConfig config_;
  TensorRanges tensors_;
  std::int64_t epoch_ = 0;
  std::vector<std::uint32_t> scratch_;
};

}  // namespace syncopate
