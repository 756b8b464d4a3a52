// ErrorFeedback: adds what a codec has lost of the gradients so far to the next ones, so that in the end all of every
// gradient is applied, some of it late (Seide et al. 2014, "1-bit SGD"; Stich et al. 2018, "Sparsified SGD with
// memory", algorithm 1; Karimireddy et al. 2019, "Error feedback fixes SignSGD", algorithm 1).
//
// The residual is kept in units of the gradient: late parts are applied with the rate of the later step.
//
// With momentum correction (Lin et al. 2018, "Deep gradient compression", section 3.2) the residual accumulates not the
// gradient g but the velocity, u, which each sender keeps of its own gradients, and what arrives is then applied by
// plain sgd:
//
//   u = m·u + g;  residual = residual + u, or, with Nesterov, residual + g + m·u;  send a part of the residual
//
// Otherwise momentum would act on late parts as if they were current. With momentum factor masking (section 3.3) u
// becomes zero, too, where a value has been sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/codec/codec.h"
#include "common/os/aligned_buffer.h"
#include "common/param_layout.h"

namespace syncopate {

// The residual of one sender and one arena. One thread at a time.
class ErrorFeedback {
 public:
  // `tensors` are as for Codec. Momentum in `config` requires top-k.
  ErrorFeedback(const CodecConfig& config, std::size_t elements, TensorRanges tensors = {});

  const Codec& codec() const { return codec_; }
  void begin_epoch(std::int64_t epoch) { codec_.begin_epoch(epoch); }

  // Encodes gradient + residual of `range` of the arena into `out`, of codec().encoded_size(range.size(), range.begin)
  // bytes, and keeps the loss: residual = gradient + residual - decoded. `gradient` has range.size() elements.
  void encode(Range range, std::span<const float> gradient, std::uint64_t key, std::span<std::byte> out);

  // One element for each of the arena's, zeros at first. May be read and set between calls, for checkpoints.
  std::span<float> residual() { return residual_.span(); }
  std::span<const float> residual() const { return residual_.span(); }
  // The same; empty without momentum correction.
  std::span<float> velocity() { return velocity_.span(); }
  std::span<const float> velocity() const { return velocity_.span(); }

 private:
  void add(std::span<const float> gradient, Range range);

  Codec codec_;
  AlignedBuffer residual_;
  AlignedBuffer velocity_;
};

}  // namespace syncopate
