// Evaluation: evaluates weights on a whole data set. It goes through the data in batches of one size, and a last one
// with the rest, so that its result does not depend on how the data is divided.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/status.h"
#include "experiments/cluster/control/control_client.h"
#include "experiments/cluster/control/test_figures.h"
#include "experiments/cluster/process/test_rows.h"
#include "worker/backend/compute_backend.h"
#include "worker/data/dataset.h"
#include "worker/model.h"
#include "worker/not_finite.h"

namespace syncopate::experiments {

class Evaluation {
 public:
  struct Score {
    double accuracy = 0;  // fraction of the labels; of regression no number
    double loss = 0;      // mean over the labels; not a number if a weight is not
    TestFigures figures;  // as far as the data set is judged by them
  };

  // Makes an evaluation of models of the kind `model` on `data`, which has at least one sample, `batch` samples at a
  // time. `data` and `backend` outlive this object. Fails as worker::make_model does.
  static Result<Evaluation> create(const std::string& model, const worker::Dataset& data,
                                   worker::ComputeBackend& backend, std::int64_t batch);

  const ParamLayout& layout() const { return models_.front()->layout(); }
  const ParamLayout& local_layout() const { return models_.front()->local_layout(); }

  // Checks whether a snapshot fits this model, and has the rows that the data uses. Fails with data loss, saying what
  // is wrong.
  Status check(const WeightsSnapshot& snapshot) const;

  // Sees each batch, one after the other, with its logits, as Model::logits returns them.
  using Visit = std::function<void(const worker::BatchView& batch, std::span<const float> logits)>;

  // Returns the first tensor of a snapshot that check accepts which holds a value that is not finite.
  std::optional<worker::FoundTensor> not_finite(const WeightsSnapshot& snapshot) const;

  // Evaluates a snapshot that check accepts: `weights` is laid out as snapshot_layout says.
  Score run(std::span<const float> weights, std::span<const float> local_state = {}, const TableKeys& rows = {},
            const Visit& visit = nullptr);

 private:
  Evaluation(const worker::Dataset& data, worker::ComputeBackend& backend, std::int64_t batch)
      : data_(&data), backend_(&backend), batch_(batch) {}

  worker::BatchView read(std::int64_t begin, std::int64_t size);
  // Returns the arena of a model with tables, with the dense weights and the rows of this batch.
  std::span<const float> arena_with_rows(std::size_t model, std::span<const float> weights, const TableKeys& rows,
                                         const worker::BatchView& batch);
  // `variance` is that of the targets.
  Score score_of_regression(double loss, double variance) const;
  TestFigures figures_of(std::span<const float> scores, std::span<const int> labels) const;

  const worker::Dataset* data_;
  worker::ComputeBackend* backend_;
  std::int64_t batch_;
  std::vector<std::unique_ptr<worker::Model>> models_;  // for full batches, and for the rest
  std::vector<std::int64_t> indices_;
  std::vector<float> values_, targets_;
  std::vector<int> ids_, labels_;
  TableKeys rows_;                          // rows that the data uses
  std::vector<std::vector<float>> arenas_;  // by model, if there are tables
};

// Returns how many samples of such data the evaluator takes at a time: as many as the memory of activations allows. The
// sum of a loss depends on it in its last bits.
std::int64_t evaluation_batch(const worker::Dataset& data);

}  // namespace syncopate::experiments
