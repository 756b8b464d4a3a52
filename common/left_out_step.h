// How a worker tells, in the gradient itself, that a step of its own is to be left out of the update: the first element
// of each bucket is NaN. It goes with the gradient through every sum, codec and wire that preserves NaN, so that
// whoever makes the update of a bucket sees it, and all who make it see the same. Strategies heed it only where they
// are asked to.
#pragma once

#include <cmath>
#include <limits>
#include <span>

namespace syncopate {

inline void mark_left_out(std::span<float> bucket) { bucket.front() = std::numeric_limits<float>::quiet_NaN(); }
inline bool is_left_out(std::span<const float> bucket) { return std::isnan(bucket.front()); }

}  // namespace syncopate
