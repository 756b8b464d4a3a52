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

// Returns the floats that a strategy keeps on the device for each weight.
std::size_t arenas_of(const ResolvedRun& config) {
  return 2 + (is_staged(config) ? 0 : state_floats(optimizer_of(config).kind));  // weights and gradients
}

// Returns the bytes of a sample as a batch holds it.
std::size_t sample_bytes(const worker::SampleForm& form) {
  const int numbers = form.values() + form.id_columns() + form.labels + (form.regression ? 1 : 0);
  return static_cast<std::size_t>(numbers) * sizeof(float);
}

}  // namespace

Result<TrainingMemory> training_memory(const ResolvedRun& config, const worker::SampleForm& form) {
  std::size_t activations[2]{}, weights = 0;
  for (const int batch : {1, 2}) {
    const std::unique_ptr<worker::ComputeBackend> backend = worker::make_address_backend(/*stores_as_gpu=*/true);
    SYNCOPATE_ASSIGN_OR_RETURN(const std::unique_ptr<worker::Model> model,
                               worker::make_model(model_spec(config), form, batch, *backend));
    activations[batch - 1] = backend->allocated();
    weights = model->layout().size() * sizeof(float);
  }
  const std::size_t sample = activations[1] - activations[0];
  constexpr std::size_t kBatchesAtOnce = 2;  // one is copied while the other is trained (worker/staged_batches.h)
  return TrainingMemory{.fixed = activations[0] - sample + weights * arenas_of(config),
                        .sample = sample + kBatchesAtOnce * sample_bytes(form)};
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
