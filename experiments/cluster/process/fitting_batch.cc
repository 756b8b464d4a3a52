#include "experiments/cluster/process/fitting_batch.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/optimizer/optimizer.h"
#include "common/text/format.h"
#include "worker/backend/compute_backend.h"
#include "worker/model.h"

namespace syncopate::experiments {
namespace {

constexpr std::size_t kSpare = 32;  // one part of so many

std::string bytes_text(std::size_t bytes) { return format_bytes(static_cast<double>(bytes)); }

// Returns the bytes that a strategy keeps on the device for each weight (ParamArenas).
std::size_t bytes_a_weight(const ResolvedRun& config) {
  const bool is_float = worker::element_type_of(config.precision) == ElementType::kFloat32;
  const std::size_t state = is_staged(config) ? 0 : state_floats(optimizer_of(config));
  const std::size_t floats = 1 + state + (is_float || is_staged(config) ? 1 : 0);
  return floats * sizeof(float) + (is_float ? 0 : 2 * size_of(worker::element_type_of(config.precision)));
}

// Returns the bytes of a sample as batches hold it: one is copied while the other is trained (worker/staged_batches.h).
// 16-bit numbers are converted from them.
std::size_t sample_bytes(const worker::SampleForm& form, ElementType element) {
  constexpr std::size_t kBatchesAtOnce = 2;
  const auto values = static_cast<std::size_t>(form.values());
  const auto others = static_cast<std::size_t>(form.id_columns() + form.labels + (form.regression ? 1 : 0));
  return kBatchesAtOnce * (values + others) * sizeof(float) +
         (element == ElementType::kFloat32 ? 0 : values * size_of(element));
}

}  // namespace

Result<TrainingMemory> training_memory(const ResolvedRun& config, const worker::SampleForm& form) {
  const ElementType element = worker::element_type_of(config.precision);
  std::size_t activations[2]{}, weights = 0;
  for (const int batch : {1, 2}) {
    const std::unique_ptr<worker::ComputeBackend> backend =
        worker::make_address_backend(/*stores_as_gpu=*/true, element);
    SYNCOPATE_ASSIGN_OR_RETURN(const std::unique_ptr<worker::Model> model,
                               worker::make_model(model_spec(config), form, batch, *backend));
    activations[batch - 1] = backend->allocated();
    weights = model->layout().size();
  }
  const std::size_t sample = activations[1] - activations[0];
  return TrainingMemory{.fixed = activations[0] - sample + weights * bytes_a_weight(config),
                        .sample = sample + sample_bytes(form, element)};
}

std::string fitting_batch(const TrainingMemory& wanted, const ResolvedRun& config, const DeviceMemory& memory,
                          std::size_t libraries) {
  const std::size_t all = memory.allocated + memory.free;
  const std::size_t left = all - std::min(all, libraries);
  const std::size_t room = left - left / kSpare;
  const std::string wants = fmt::format("beside {} of workspace a batch of {} wants {}", bytes_text(libraries),
                                        config.batch_size, bytes_text(wanted.of(config.batch_size)));
  if (wanted.of(1) > room) return fmt::format("{}, and a batch of 1 still {}", wants, bytes_text(wanted.of(1)));
  const std::size_t fits = (room - wanted.fixed) / wanted.sample;
  if (fits >= static_cast<std::size_t>(config.batch_size)) {
    return wants + "; use a smaller --batch-size";
  }
  if (!config.global_batch_size) return fmt::format("{}; --batch-size={} fits", wants, fits);
  return fmt::format("{}; --global-batch-size={} fits", wants, fits * static_cast<std::size_t>(config.workers));
}

}  // namespace syncopate::experiments
