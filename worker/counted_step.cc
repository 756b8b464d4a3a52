#include "worker/counted_step.h"

#include <utility>

#include "worker/backend/counting_backend.h"
#include "worker/model.h"
#include "worker/recommender/make_recommender.h"

namespace syncopate::worker {
namespace {

// A batch of addresses alone.
BatchView addresses_of_batch(const SampleForm& form, int batch_size, ComputeBackend& backend) {
  const auto floats = [&](int of_sample) {
    return backend.allocate_floats(static_cast<std::size_t>(batch_size) * static_cast<std::size_t>(of_sample));
  };
  const auto ints = [&](int of_sample) {
    static_assert(sizeof(int) == sizeof(float));
    const Floats memory = floats(of_sample);
    return std::span<const int>(reinterpret_cast<const int*>(memory.data()), memory.size());
  };
  return {.values = floats(form.values()),
          .labels = ints(form.labels),
          .ids = ints(form.id_columns()),
          .targets = floats(form.regression ? 1 : 0)};
}

}  // namespace

Result<CountedStep> count_step(const std::string& spec, const SampleForm& form, int batch_size, ElementType type) {
  if (is_recommender(spec)) {
    return invalid_model(spec, "trains on processors alone, since a table of embeddings does not go to a GPU");
  }
  std::vector<CountedOperation> operations;
  const std::unique_ptr<ComputeBackend> backend = make_counting_backend(type, operations);
  SYNCOPATE_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, make_model(spec, form, batch_size, *backend));
  CountedStep step{.weights = model->layout().size()};
  const BatchView batch = addresses_of_batch(form, batch_size, *backend);
  const Out weights = backend->allocate_tensor(step.weights), gradients = backend->allocate_tensor(step.weights);
  model->forward(weights, batch);
  step.forward = std::exchange(operations, {});
  model->backward(weights, gradients, [](std::size_t) {});
  step.backward = std::move(operations);
  step.activation_bytes = backend->allocated() - weights.size_bytes() - gradients.size_bytes();
  return step;
}

}  // namespace syncopate::worker
