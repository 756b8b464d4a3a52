#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "common/text/log.h"
#include "experiments/cluster/control/figure_text.h"
#include "experiments/cluster/process/data_of.h"
#include "experiments/cluster/process/evaluation.h"
#include "experiments/cluster/process/roles.h"

namespace syncopate::experiments {
namespace {

ValidationFigures validated(Evaluation& validation, const WeightsSnapshot& snapshot) {
  const Evaluation::Score score = validation.run(snapshot.weights, snapshot.local_state, snapshot.rows);
  log_info("step {}: validation loss {}, {}", snapshot.steps_done, figure_text(score.loss),
           to_text(score.accuracy, score.figures));
  return {.accuracy = score.accuracy, .loss = score.loss, .r2 = score.figures.r2};
}

worker::NotFinite described(const Evaluation& evaluation, const WeightsSnapshot& snapshot, double loss) {
  worker::NotFinite what{.step = snapshot.steps_done, .value = loss, .loss = loss};
  if (const auto found = evaluation.not_finite(snapshot)) {
    what.quantity = worker::NotFinite::Quantity::kWeights;
    what.tensor = found->name;
    what.value = found->value;
  }
  return what;
}

}  // namespace

Status run_evaluator(const RoleContext& context) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::shared_ptr<const worker::DatasetPair> data,
                             context.host.open_data(context.config));
  const std::unique_ptr<worker::ComputeBackend> backend = backend_of(context.config);
  const std::int64_t batch = evaluation_batch(*data->test);
  SYNCOPATE_ASSIGN_OR_RETURN(Evaluation evaluation,
                             Evaluation::create(model_spec(context.config), *data->test, *backend, batch));
  std::optional<Evaluation> validation;
  if (data->validation) {
    SYNCOPATE_ASSIGN_OR_RETURN(validation,
                               Evaluation::create(model_spec(context.config), *data->validation, *backend, batch));
  }

  bool is_reported = false;
  while (true) {
    context.activity.rest("waiting for a snapshot", 0);
    const Result<WeightsSnapshot> snapshot = context.control.next_snapshot();
    if (snapshot.status().code() == Code::kCancelled) return Status();
    if (!snapshot.ok()) return snapshot.status();
    SYNCOPATE_RETURN_IF_ERROR(evaluation.check(*snapshot));
    context.activity.rest("evaluating", snapshot->steps_done);
    const Evaluation::Score score = evaluation.run(snapshot->weights, snapshot->local_state, snapshot->rows);
    log_info("step {}: {}, loss {}", snapshot->steps_done, to_text(score.accuracy, score.figures),
             figure_text(score.loss));
    EvaluationScores scores{.accuracy = score.accuracy, .loss = score.loss, .figures = score.figures};
    if (validation) scores.validation = validated(*validation, *snapshot);
    if (!std::isfinite(score.loss) && !std::exchange(is_reported, true)) {
      context.control.report_not_finite(described(evaluation, *snapshot, score.loss));
    }
    context.control.send_evaluation(*snapshot, scores);
  }
}

}  // namespace syncopate::experiments
