// ErrorFeedback: what a codec has lost of the gradients so far is added to the next ones, so that in the end all of
// every gradient is applied, some of it late (Seide et al. 2014, "1-bit SGD"; Stich et al. 2018, "Sparsified SGD with
// memory", algorithm 1; Karimireddy et al. 2019, "Error feedback fixes SignSGD", algorithm 1).
//
// The residual is kept in units of the gradient: what comes late is applied at the rate of the later step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/aligned_buffer.h"
#include "common/codec/codec.h"
#include "common/param_layout.h"

namespace syncopate {

// Of one sender and one arena. One thread at a time.
class ErrorFeedback {
 public:
  ErrorFeedback(const CodecConfig& config, std::size_t elements) : codec_(config), residual_(elements) {}

  const Codec& codec() const { return codec_; }

  // Encodes gradient + residual of `range` of the arena into `out`, of codec().encoded_size(range.size()) bytes, and
  // keeps what was lost of it: residual = gradient + residual - decoded. `gradient` has range.size() elements.
  void encode(Range range, std::span<const float> gradient, std::uint64_t key, std::span<std::byte> out);

  // An element for each of the arena's, zeros at first. May be read and set between calls: a checkpoint holds it.
  std::span<float> residual() { return residual_.span(); }
  std::span<const float> residual() const { return residual_.span(); }

 private:
  Codec codec_;
  AlignedBuffer residual_;
};

}  // namespace syncopate
