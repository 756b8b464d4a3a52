#include "tests/support/shadow_update.h"

#include <cstddef>

#include "common/optimizer/update_rule.h"
#include "common/os/flush_denormals.h"

// Compiled without contraction to fused multiply-add, like all that includes the rules (see tests/CMakeLists.txt).

namespace syncopate::testing_support {

void shadow_update(const OptimizerConfig& rule, std::span<float> weights, std::span<const float> gradient,
                   const DeviceOptimizerState& state, const update_rule::UpdateConstants& constants) {
  const FlushDenormals flush;
  const auto& [first, second, third] = state.memories;
  update_rule::with_rule(rule, [&]<typename Rule>(Rule) {
    if constexpr (!update_rule::Layerwise<Rule>)
      for (std::size_t i = 0; i < weights.size(); ++i) {
        update_rule::apply_at<Rule>(weights[i], gradient[i], first.data(), second.data(), third.data(), i,
                                    constants.*(Rule::kConstants));
      }
  });
}

}  // namespace syncopate::testing_support
