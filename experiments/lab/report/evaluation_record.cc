#include "experiments/lab/report/evaluation_record.h"

#include <fmt/format.h>

namespace syncopate::experiments {

std::string evaluated_weights(const ResolvedRun& config) {
  if (!is_distributed(config)) return "the worker's";
  if (sums_among_workers(config)) {
    if (has_replicas_of_their_own(config)) return "the mean of all workers";
    if (!averages_weights(config)) return "all workers', which are the same";
    return outer_options_of(config).are_means() ? "the mean of all workers, when they have met"
                                                : "those that all workers have agreed on last";
  }
  const ps::Consistency& consistency = config.consistency;
  if (consistency.is_elastic()) return "the center, when a worker has met it";
  if (consistency.applies_stale_gradients()) return "the servers', as a worker was answered last";
  return consistency.pushes_weights() ? "the mean of all workers, when they have met"
                                      : "all workers', which are the same";
}

std::string not_evaluated_text(const EvaluationRecord& record) {
  std::string text;
  if (const std::int64_t missing = record.points - record.evaluated; missing > 0) {
    text = fmt::format("{} of {} points", missing, record.points);
  }
  if (!record.final_evaluated) text += text.empty() ? "the final weights" : ", and the final weights";
  if (text.empty()) return text;
  if (record.lost_evaluator) return text + ": the evaluator was lost, or not done in time";
  if (record.is_cut_short) return text + ": the run ended before";
  return text + ": they came faster than they could be taken and evaluated; a longer --evaluate-every helps";
}

std::string to_text(const EvaluationRecord& record) {
  if (record.points > 0) {
    return fmt::format("{} of {} points, {}{}: {}", record.evaluated, record.points, record.every,
                       record.final_evaluated ? ", and at the end" : "", record.weights);
  }
  if (!record.final_evaluated) return fmt::format("never, since no point came ({})", record.every);
  return fmt::format("at the end alone, since no point came before ({}): {}", record.every, record.weights);
}

}  // namespace syncopate::experiments
