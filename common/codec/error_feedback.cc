#include "common/codec/error_feedback.h"

#include <cassert>
#include <utility>

#include "common/codec/top_k.h"
#include "common/float_loops.h"
#include "common/os/flush_denormals.h"
#include "common/os/target_clones.h"

namespace syncopate {
namespace {

template <bool kNesterov>
SYNCOPATE_CLONES void add_velocity(const float* __restrict gradient, float* __restrict velocity,
                                   float* __restrict residual, std::size_t count, float momentum) {
  for (std::size_t i = 0; i < count; ++i) {
    const float next = momentum * velocity[i] + gradient[i];
    velocity[i] = next;
    residual[i] += kNesterov ? gradient[i] + momentum * next : next;
  }
}

}  // namespace

ErrorFeedback::ErrorFeedback(const CodecConfig& config, std::size_t elements, TensorRanges tensors)
    : codec_(config, std::move(tensors)), residual_(elements), velocity_(config.momentum.enabled() ? elements : 0) {
  assert(!config.momentum.enabled() || config.kind == CodecKind::kTopK);
}

void ErrorFeedback::encode(Range range, std::span<const float> gradient, std::uint64_t key, std::span<std::byte> out) {
  const std::span<float> residual = slice(residual_.span(), range);
  assert(gradient.size() == residual.size());
  add(gradient, range);
  codec_.encode(residual, key, out, range.begin);
  // What encode() has just made decodes.
  [[maybe_unused]] const Status decoded = codec_.subtract_decoded(out, key, residual, range.begin);
  assert(decoded.ok());
  if (codec_.config().momentum.how == CompressMomentum::kMasking) {
    codec::clear_sent(out, slice(velocity_.span(), range));
  }
}

void ErrorFeedback::add(std::span<const float> gradient, Range range) {
  const std::span<float> residual = slice(residual_.span(), range);
  const LocalMomentum& momentum = codec_.config().momentum;
  if (const float decay = codec_.config().decay; decay != 1) {
    for (float& left : residual) left *= decay;
  }
  if (!momentum.enabled()) {
    return syncopate::add(gradient.data(), residual.data(), residual.size());
  }
  const FlushDenormals flush;  // a velocity that is no longer fed shrinks for ever
  const auto add_all = momentum.nesterov ? add_velocity<true> : add_velocity<false>;
  add_all(gradient.data(), slice(velocity_.span(), range).data(), residual.data(), residual.size(), momentum.momentum);
}

}  // namespace syncopate
