// The largest batch for whose training a device has room, for the advice to whoever wanted a larger one.
#pragma once

#include <cstddef>
#include <string>

#include "common/device/device.h"
#include "common/status.h"
#include "experiments/config/resolved_run.h"
#include "worker/data/dataset.h"

namespace syncopate::experiments {

// Bytes that training asks a device for: linear in the batch, since so are activations.
struct TrainingMemory {
  std::size_t fixed = 0;   // weights, gradients, the optimizer's state
  std::size_t sample = 0;  // of a batch

  std::size_t of(int batch) const { return fixed + sample * static_cast<std::size_t>(batch); }
};

// Makes the model twice on the processor, for small batches, and takes what it asks for. Fails as make_model does.
Result<TrainingMemory> training_memory(const ResolvedRun& config, const worker::SampleForm& form);

// Returns advice: what the run's batch wants, and which --batch-size (or --global-batch-size, if that was given) fits
// in `memory`, of which `libraries` bytes are not the model's. A part is left for what the driver rounds up and loads
// later. What convolutions want beyond the usual workspace is not known, so a batch that should have fitted is not
// named.
std::string fitting_batch(const TrainingMemory& wanted, const ResolvedRun& config, const DeviceMemory& memory,
                          std::size_t libraries);

}  // namespace syncopate::experiments
