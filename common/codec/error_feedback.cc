#include "common/codec/error_feedback.h"

#include <algorithm>
#include <cassert>
#include <functional>

namespace syncopate {

void ErrorFeedback::encode(Range range, std::span<const float> gradient, std::uint64_t key, std::span<std::byte> out) {
  const std::span<float> residual = slice(residual_.span(), range);
  assert(gradient.size() == residual.size());
  std::transform(residual.begin(), residual.end(), gradient.begin(), residual.begin(), std::plus());
  codec_.encode(residual, key, out);
  // What encode() has just made decodes.
  [[maybe_unused]] const Status decoded = codec_.subtract_decoded(out, key, residual);
  assert(decoded.ok());
}

}  // namespace syncopate
