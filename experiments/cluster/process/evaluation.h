// Evaluation: how well weights do on a whole data set. It goes through the data in batches of one size, and a last one
// of what is left, so that its answer does not depend on how the data is cut.
#pragma once

#include <cstdint>
#include <memory>
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

namespace syncopate::experiments {

class Evaluation {
 public:
  struct Score {
    double accuracy = 0;  // share of the labels
    double loss = 0;      // mean over the labels; no number where a weight is none
    TestFigures figures;  // as far as the data set is judged by them
  };

  // Of models of the kind `model` on `data`, which holds a sample at least, `batch` samples at a time. `data` and
  // `backend` outlive this object. Fails as worker::make_model does.
  static Result<Evaluation> create(const std::string& model, const worker::Dataset& data,
                                   worker::ComputeBackend& backend, std::int64_t batch);

  const ParamLayout& layout() const { return models_.front()->layout(); }
  const ParamLayout& local_layout() const { return models_.front()->local_layout(); }

  // Whether a snapshot can be of this model, and has the rows that the data touches. Data loss says what is wrong.
  Status check(const WeightsSnapshot& snapshot) const;

  // Of a snapshot that check accepts: `weights` is laid out as snapshot_layout says.
  Score run(std::span<const float> weights, std::span<const float> local_state = {}, const TableKeys& rows = {});

 private:
  Evaluation(const worker::Dataset& data, worker::ComputeBackend& backend, std::int64_t batch)
      : data_(&data), backend_(&backend), batch_(batch) {}

  worker::BatchView read(std::int64_t begin, std::int64_t size);
  // Of a model with tables, its arena with the dense weights and the rows of this batch.
  std::span<const float> arena_with_rows(std::size_t model, std::span<const float> weights, const TableKeys& rows,
                                         const worker::BatchView& batch);
  TestFigures figures_of(std::span<const float> scores, std::span<const int> labels) const;

  const worker::Dataset* data_;
  worker::ComputeBackend* backend_;
  std::int64_t batch_;
  std::vector<std::unique_ptr<worker::Model>> models_;  // for full batches, and for the rest
  std::vector<std::int64_t> indices_;
  std::vector<float> values_;
  std::vector<int> ids_, labels_;
  TableKeys rows_;                          // that the data touches
  std::vector<std::vector<float>> arenas_;  // by model, where there are tables
};

}  // namespace syncopate::experiments
