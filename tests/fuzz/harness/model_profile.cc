// A model's profile. What is taken has tensors that can be counted, and a step can be predicted for it.
#include "prediction/model_profile.h"

#include <cmath>

#include "prediction/step_prediction.h"
#include "tests/fuzz/harness.h"

namespace syncopate::fuzz {
namespace {

const Harness model_profile("model_profile", [](Bytes input) {
  const Result<prediction::ModelProfile> profile = prediction::read_profile(text_of(input));
  if (!profile.ok()) {
    require(!profile.status().message().empty(), "what is refused is refused with a reason");
    return;
  }
  require(profile->parameters() > 0, "the parameters of all tensors can be counted");
  const prediction::Network network{.alpha = 1e-6, .bytes_per_second = 1e9, .workers = 4};
  const auto step = prediction::predict_step(*profile, 1, network, {.exchange = prediction::Exchange::kServers});
  constexpr double kRounding = 1e-6;
  require(step.ok() && std::isfinite(step->step) && step->step >= 1 - kRounding, "a step lasts as long as it computes");
});

}  // namespace
}  // namespace syncopate::fuzz
