#include "tests/support/shadow_update.h"

#include <cstddef>

#include "common/optimizer/update_rule.h"
#include "common/os/flush_denormals.h"

// Compiled without contraction to fused multiply-add, like all that includes the rules (see tests/CMakeLists.txt).

namespace syncopate::testing_support {

void shadow_update(const OptimizerConfig& rule, std::span<float> weights, std::span<const float> gradient,
                   const DeviceOptimizerState& state, const update_rule::UpdateConstants& constants) {
  const FlushDenormals flush;
  const auto& [plain, adam, adagrad, ftrl] = constants;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    switch (rule.kind) {
      case OptimizerKind::kSgd:
        update_rule::sgd(weights[i], gradient[i], plain);
        break;
      case OptimizerKind::kMomentum:
        if (rule.nesterov) {
          update_rule::momentum<true>(weights[i], gradient[i], state.first[i], plain);
        } else {
          update_rule::momentum<false>(weights[i], gradient[i], state.first[i], plain);
        }
        break;
      case OptimizerKind::kAdam:
      case OptimizerKind::kAdamW:
        update_rule::adam(weights[i], gradient[i], state.first[i], state.second[i], adam);
        break;
      case OptimizerKind::kAdagrad:
        update_rule::adagrad(weights[i], gradient[i], state.first[i], adagrad);
        break;
      case OptimizerKind::kFtrl:
        update_rule::ftrl(weights[i], gradient[i], state.first[i], state.second[i], ftrl);
        break;
    }
  }
}

}  // namespace syncopate::testing_support
