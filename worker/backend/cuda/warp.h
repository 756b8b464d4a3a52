// Reductions over a warp, for kernels in which a warp handles a row.
#pragma once

namespace syncopate::worker {

inline constexpr unsigned kWarp = 32;
inline constexpr unsigned kAllLanes = 0xffffffffu;

// warp_sum returns to every lane the sum over all lanes; warp_largest returns the largest.
__device__ inline float warp_sum(float mine) {
  for (unsigned distance = kWarp / 2; distance > 0; distance /= 2) mine += __shfl_xor_sync(kAllLanes, mine, distance);
  return mine;
}
__device__ inline float warp_largest(float mine) {
  for (unsigned distance = kWarp / 2; distance > 0; distance /= 2) {
    mine = fmaxf(mine, __shfl_xor_sync(kAllLanes, mine, distance));
  }
  return mine;
}

}  // namespace syncopate::worker
