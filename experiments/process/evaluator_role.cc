#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <numeric>
#include <vector>

#include "experiments/process/data_of.h"
#include "experiments/process/roles.h"
#include "worker/data/batch_loader.h"
#include "worker/model.h"

namespace syncopate::experiments {
namespace {

constexpr std::int64_t kBatch = 250;
// Training comes first, but on a machine that others keep busy an evaluation must get done, too: the lowest priority,
// 19, would leave it about a hundredth of a core, too little to end within a run's timeout; this leaves it about a
// tenth.
constexpr int kNiceness = 10;

// Goes through a data set in batches of one size, and a last one of what is left.
class Evaluation {
 public:
  Evaluation(const RunConfig& config, const worker::Dataset& data) : data_(data), backend_(backend_of(config)) {}

  Status prepare(const RunConfig& config) {
    for (std::int64_t begin = 0; begin < data_.size(); begin += kBatch) {
      const auto size = static_cast<int>(std::min(kBatch, data_.size() - begin));
      if (!models_.empty() && models_.back()->batch_size() == size) continue;
      Result<std::unique_ptr<worker::Model>> model =
          worker::make_model(config.model, data_.shape(), data_.classes(), size, *backend_);
      if (!model.ok()) return model.status();
      models_.push_back(std::move(*model));
    }
    return Status();
  }

  std::size_t weights_expected() const { return models_.front()->layout().size(); }

  worker::LossAndCorrect run(std::span<const float> weights) {
    worker::LossAndCorrect all;
    for (std::int64_t begin = 0; begin < data_.size(); begin += kBatch) {
      const auto size = static_cast<std::size_t>(std::min(kBatch, data_.size() - begin));
      worker::Model& model = *models_[static_cast<std::size_t>(models_.front()->batch_size()) == size ? 0 : 1];
      model.forward(weights, read(begin, size));
      const worker::LossAndCorrect part = model.loss();
      all.loss += part.loss * static_cast<double>(size) / static_cast<double>(data_.size());
      all.correct += part.correct;
    }
    return all;
  }

 private:
  worker::BatchView read(std::int64_t begin, std::size_t size) {
    const auto values = static_cast<std::size_t>(data_.shape().values());
    indices_.resize(size);
    std::iota(indices_.begin(), indices_.end(), begin);
    scratch_.resize(values);
    images_.resize(size * values);
    labels_.resize(size);
    worker::read_batch(data_, indices_, scratch_, images_, labels_);
    return {images_, labels_};
  }

  const worker::Dataset& data_;
  std::unique_ptr<worker::ComputeBackend> backend_;
  std::vector<std::unique_ptr<worker::Model>> models_;  // for full batches, and for the rest
  std::vector<std::int64_t> indices_;
  std::vector<std::uint8_t> scratch_;
  std::vector<float> images_;
  std::vector<int> labels_;
};

}  // namespace

Status run_evaluator(const RoleContext& context) {
  setpriority(PRIO_PROCESS, 0, kNiceness);
  Result<worker::DatasetPair> data = open_data_of(context.config);
  if (!data.ok()) return data.status();
  Evaluation evaluation(context.config, *data->test);
  SYNCOPATE_RETURN_IF_ERROR(evaluation.prepare(context.config));

  while (true) {
    context.activity.rest("waiting for a snapshot", 0);
    const Result<WeightsSnapshot> snapshot = context.control.next_snapshot();
    if (snapshot.status().code() == Code::kCancelled) return Status();
    if (!snapshot.ok()) return snapshot.status();
    if (snapshot->weights.size() != evaluation.weights_expected()) {
      return Status(Code::kDataLoss, fmt::format("a snapshot of {} weights where the model has {}",
                                                 snapshot->weights.size(), evaluation.weights_expected()));
    }
    context.activity.rest("evaluating", snapshot->steps_done);
    const worker::LossAndCorrect result = evaluation.run(snapshot->weights);
    const double accuracy = static_cast<double>(result.correct) / static_cast<double>(data->test->size());
    spdlog::info("epoch {}, step {}: accuracy {:.4f}, loss {:.4f}", snapshot->epoch, snapshot->steps_done, accuracy,
                 result.loss);
    context.control.send_evaluation(*snapshot, accuracy, result.loss);
  }
}

}  // namespace syncopate::experiments
