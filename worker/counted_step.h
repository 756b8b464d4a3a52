// The work that a training step of a model gives to a GPU, counted without one (backend/counting_backend.h).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "common/status.h"
#include "common/tensor_span.h"
#include "worker/backend/counted_operation.h"
#include "worker/data/dataset.h"

namespace syncopate::worker {

struct CountedStep {
  std::vector<CountedOperation> forward;  // in their order; with the loss
  std::vector<CountedOperation> backward;
  std::size_t weights = 0;  // of the arena
  // What the model and a batch of its samples take on the device beside weights and gradients.
  std::size_t activation_bytes = 0;
};

// Makes the model (make_model) and counts a step of one batch with tensors of that type. The update is not in it. Fails
// as make_model does, and for a recommender, which trains on processors alone.
Result<CountedStep> count_step(const std::string& spec, const SampleForm& form, int batch_size, ElementType type);

}  // namespace syncopate::worker
