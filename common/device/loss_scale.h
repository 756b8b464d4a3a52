// LossScale: the factor of the loss where gradients are float16 numbers, whose range is so small that small
// gradients vanish (Micikevicius et al. 2018, "Mixed precision training", section 3.2). It is found while training: a
// step with a gradient that is not finite is skipped, and the factor is halved; after kGrowthSteps steps without one it
// is doubled. Ranks that look at the same sums of gradients skip the same steps.
//
// It lies in a device's memory, where steps read it and change it in their order, so that the host need not wait.
#pragma once

#include <cstdint>

#include "common/sync_strategy.h"

#ifdef __CUDACC__
#define SYNCOPATE_ANYWHERE __host__ __device__
#else
#define SYNCOPATE_ANYWHERE
#endif

namespace syncopate {

struct LossScale {
  // The first and the steps are those of PyTorch's GradScaler, which has no bounds. All factors are powers of two:
  // gradients lose no bits by them.
  static constexpr float kFirst = 65536, kLeast = 1, kMost = 16777216;
  static constexpr std::int32_t kGrowthSteps = 2000;

  float factor = kFirst;
  std::int32_t good_steps = 0;     // since it was changed last
  std::int32_t skipped_steps = 0;  // in the whole job
  std::uint32_t overflowed = 0;    // not 0: some gradient of this step is not finite

  // Which update constants a step takes: the host, which does not know yet whether the steps before were skipped, has
  // written some for either case.
  SYNCOPATE_ANYWHERE int choice() const { return skipped_steps % kStepsUnderWay; }

  // After a step's updates.
  SYNCOPATE_ANYWHERE void end_step() {
    ++good_steps;
    if (overflowed != 0) {
      ++skipped_steps;
      good_steps = 0;
      if (factor > kLeast) factor /= 2;
    } else if (good_steps == kGrowthSteps) {
      good_steps = 0;
      if (factor < kMost) factor *= 2;
    }
    overflowed = 0;
  }
};

}  // namespace syncopate
