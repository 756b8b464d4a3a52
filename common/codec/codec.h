// Codec: a run of float32 values as fewer bytes, and back. Pure: no input or output, no threads, no time.
//
//   codec    bytes of n elements              decoded value
//   none     4n                               the same bits
//   fp16     2n                               rounded to nearest even; from 65520 on infinite, below 2^-25 zero
//   bf16     2n                               rounded to nearest even
//   int8     n + 4·ceil(n/1024)               nearest of 255 multiples of max|x|/127 of its chunk of 1024, or, rounded
//                                             stochastically, one of the two around it, drawn from the key
//   top-k    8k, k = ceil(ratio·n)            the k largest by magnitude, exact; the others zero
//   random-k 4k                               k elements drawn from the key, exact; the others zero
//   sign     n/8 + 4·ceil(n/1024), in words   ± the mean |x| of its chunk of 1024; zeros count as positive
//
// Numbers are little endian. The length follows from how many elements there are and where tensors begin among them, so
// that both sides know it beforehand: in int8 and sign each tensor begins a chunk, with a scale of its own. Top-k with
// a warm-up (codec_config.h) has one length for each of its epochs; the sender's decides, and a receiver takes them
// all.
//
// A gradient that has diverged is seen to: NaN and infinities stay what they are in none, fp16, bf16, top-k and, where
// they are drawn, random-k; in int8 and sign, a chunk that holds one is NaN throughout.
//
// The same bytes and values on every processor, and with denormals flushed or not, but for values that are denormal
// themselves. Sources: README.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/codec/codec_config.h"
#include "common/status.h"
#include "common/tensor_begins.h"

namespace syncopate {

// Holds nothing but its configuration, the epoch, and scratch memory, which grows to what encode() needs. One thread at
// a time.
class Codec {
 public:
  // Any kind but PowerSGD, which works on matrices and takes two rounds: power_sgd.h. `begins` is where the tensors of
  // the arena begin whose values are encoded; empty: it is one tensor.
  explicit Codec(const CodecConfig& config, TensorBegins begins = {});

  const CodecConfig& config() const { return config_; }
  const TensorBegins& begins() const { return begins_; }

  // From now on encode() is of this epoch, 0 at first: it decides the ratio of a top-k that warms up.
  void begin_epoch(std::int64_t epoch) { epoch_ = epoch; }

  // `begin`, here and below: the place in the arena of the first of the values.
  // Bytes of `elements` values in this epoch, exactly, and the most in any. Less than 2^32 elements.
  std::size_t encoded_size(std::size_t elements, std::size_t begin = 0) const;
  std::size_t largest_size(std::size_t elements, std::size_t begin = 0) const;
  // An epoch in which `elements` values have `bytes` bytes, if there is one: the first.
  std::optional<std::int64_t> epoch_of(std::size_t bytes, std::size_t elements, std::size_t begin = 0) const;

  // Fills `out`, of encoded_size(values.size(), begin) bytes. `key` names the values among all that a run encodes, as
  // their place and step do; random-k draws its elements from it, and so whoever decodes must know it, and stochastic
  // rounding its chances.
  void encode(std::span<const float> values, std::uint64_t key, std::span<std::byte> out, std::size_t begin = 0);

  // Every element of `out` becomes the decoded value. Data loss, and `out` is left as it was, if `encoded` is not what
  // encode() makes of out.size() values in some epoch: another length, indices that do not ascend or are out of range,
  // scales that are negative or infinite. Bytes may come from anywhere, at any alignment. If they change meanwhile, as
  // in memory that their sender can write, the values are worth nothing, and nothing but `out` is written to.
  Status decode(std::span<const std::byte> encoded, std::uint64_t key, std::span<float> out,
                std::size_t begin = 0) const;

  // sum += decoded, and sum -= decoded, with the same checks. Top-k and random-k touch what was sent alone.
  Status add_decoded(std::span<const std::byte> encoded, std::uint64_t key, std::span<float> sum,
                     std::size_t begin = 0) const;
  Status subtract_decoded(std::span<const std::byte> encoded, std::uint64_t key, std::span<float> sum,
                          std::size_t begin = 0) const;

 private:
  CodecConfig config_;
  TensorBegins begins_;
  std::int64_t epoch_ = 0;
  std::vector<std::uint32_t> scratch_;
};

}  // namespace syncopate
