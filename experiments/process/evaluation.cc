#include "experiments/process/evaluation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "worker/data/batch_loader.h"

namespace syncopate::experiments {

Result<Evaluation> Evaluation::create(const std::string& model, const worker::Dataset& data,
                                      worker::ComputeBackend& backend, std::int64_t batch) {
  Evaluation evaluation(data, backend, batch);
  std::vector<std::unique_ptr<worker::Model>>& models = evaluation.models_;
  for (std::int64_t begin = 0; begin < data.size(); begin += batch) {
    const auto size = static_cast<int>(std::min(batch, data.size() - begin));
    if (!models.empty() && models.back()->batch_size() == size) continue;
    Result<std::unique_ptr<worker::Model>> made =
        worker::make_model(model, data.form(), size, backend, worker::Pass::kEvaluation);
    if (!made.ok()) return made.status();
    models.push_back(std::move(*made));
  }
  return evaluation;
}

Evaluation::Score Evaluation::run(std::span<const float> weights, std::span<const float> local_state) {
  for (const std::unique_ptr<worker::Model>& model : models_) backend_->upload(local_state, model->local_state());
  const auto samples = static_cast<double>(data_->size());
  std::int64_t correct = 0;
  double loss = 0;
  for (std::int64_t begin = 0; begin < data_->size(); begin += batch_) {
    const std::int64_t size = std::min(batch_, data_->size() - begin);
    worker::Model& model = *models_[models_.front()->batch_size() == size ? 0 : 1];
    model.forward(weights, read(begin, size));
    const worker::LossAndCorrect part = model.loss();
    loss += part.loss * static_cast<double>(size) / samples;
    correct += part.correct;
  }
  // A relu on the way may have hidden it.
  const auto all_numbers = [](std::span<const float> values) {
    return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
  };
  if (!all_numbers(weights) || !all_numbers(local_state)) {
    loss = std::numeric_limits<double>::quiet_NaN();
  }
  return {.accuracy = static_cast<double>(correct) / (samples * data_->form().labels), .loss = loss};
}

worker::BatchView Evaluation::read(std::int64_t begin, std::int64_t size) {
  const auto count = static_cast<std::size_t>(size);
  const worker::SampleForm& form = data_->form();
  indices_.resize(count);
  std::iota(indices_.begin(), indices_.end(), begin);
  values_.resize(count * static_cast<std::size_t>(form.values()));
  ids_.resize(count * static_cast<std::size_t>(form.id_columns()));
  labels_.resize(count * static_cast<std::size_t>(form.labels));
  worker::read_batch(*data_, indices_, 0, {.values = values_, .ids = ids_, .labels = labels_});
  return {values_, labels_, ids_};
}

}  // namespace syncopate::experiments
