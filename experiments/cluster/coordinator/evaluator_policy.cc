#include "experiments/cluster/coordinator/evaluator_policy.h"

#include <fmt/format.h>

#include <array>

namespace syncopate::experiments {
namespace {

// The cause of its death, such as a shortage of memory, may pass.
constexpr std::array<Duration, EvaluatorPolicy::kMostStarts> kPauses{std::chrono::milliseconds(100),
                                                                     std::chrono::seconds(1), std::chrono::seconds(5)};

}  // namespace

bool EvaluatorPolicy::on_evaluation(std::int64_t point, bool final) {
  if (!backlog_.on_evaluation(point, final)) return false;
  starts_ = 0;
  return true;
}

EvaluatorPolicy::Loss EvaluatorPolicy::on_lost() {
  if (starts_ == kMostStarts) {
    return {{}, fmt::format("it was started again {} times and has evaluated nothing: {}", kMostStarts, give_up())};
  }
  const Duration pause = kPauses[static_cast<std::size_t>(starts_++)];
  const std::string waiting = backlog_.waiting_text();
  return {pause, "it is started again" + (waiting.empty() ? "" : ", for " + waiting)};
}

std::string EvaluatorPolicy::give_up() {
  backlog_.give_up();
  return std::string("nothing is evaluated any more") + (has_target_ ? ", and --target-accuracy cannot be judged" : "");
}

}  // namespace syncopate::experiments
