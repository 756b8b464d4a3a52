#include "experiments/lab/run/step_work.h"

#include <fmt/format.h>

#include "common/optimizer/optimizer.h"
#include "experiments/cluster/process/data_of.h"
#include "worker/counted_step.h"

namespace syncopate::experiments {
namespace {

std::vector<prediction::DeviceOperation> operations_of(const std::vector<worker::CountedOperation>& counted) {
  std::vector<prediction::DeviceOperation> operations;
  for (const worker::CountedOperation& operation : counted) {
    operations.push_back({.name = operation.name,
                          .flops = operation.flops,
                          .bytes = operation.bytes_read + operation.bytes_written,
                          .launches = operation.launches});
  }
  return operations;
}

}  // namespace

Result<StepWork> step_work(const ResolvedRun& config) {
  SYNCOPATE_ASSIGN_OR_RETURN(const worker::SampleForm form, form_of_data(config));
  const ElementType type = worker::element_type_of(config.precision);
  SYNCOPATE_ASSIGN_OR_RETURN(const worker::CountedStep step,
                             worker::count_step(model_spec(config), form, config.batch_size, type));
  constexpr double kFloat = sizeof(float);
  const auto weights = static_cast<double>(step.weights), gradient = static_cast<double>(size_of(type));
  const double state = kFloat * static_cast<double>(state_floats(optimizer_of(config)));
  // The model's own, beside those that updates are added to (ParamArenas).
  const double rounded = type == ElementType::kFloat32 ? 0 : static_cast<double>(size_of(type));
  // Beside the update itself: the search for overflows reads all gradients, and a kernel settles the loss scale.
  const bool is_scaled = type == ElementType::kFloat16;
  const double read = kFloat + gradient * (is_scaled ? 2 : 1) + state, written = kFloat + rounded + state;
  // One batch is copied while the other is trained (worker/staged_batches.h).
  const int numbers = form.values() + form.id_columns() + form.labels + (form.regression ? 1 : 0);
  const double next_batch = kFloat * config.batch_size * numbers;
  return StepWork{.forward = operations_of(step.forward),
                  .backward = operations_of(step.backward),
                  .update = {.name = fmt::format("update of {} weights", step.weights),
                             .bytes = weights * (read + written),
                             .launches = is_scaled ? 3 : 1},
                  .arena_bytes = weights * (kFloat + rounded + gradient + state),
                  .activation_bytes = static_cast<double>(step.activation_bytes) + next_batch};
}

}  // namespace syncopate::experiments
