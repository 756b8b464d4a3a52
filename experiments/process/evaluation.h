// Evaluation: how well weights do on a whole data set. It goes through the data in batches of one size, and a last one
// of what is left, so that its answer does not depend on how the data is cut.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/status.h"
#include "worker/backend/compute_backend.h"
#include "worker/data/dataset.h"
#include "worker/model.h"

namespace syncopate::experiments {

class Evaluation {
 public:
  struct Score {
    double accuracy = 0;  // share of the labels
    double loss = 0;      // mean over the labels; no number where a weight is none
  };

  // Of models of the kind `model` on `data`, which holds a sample at least, `batch` samples at a time. `data` and
  // `backend` outlive this object. Fails as worker::make_model does.
  static Result<Evaluation> create(const std::string& model, const worker::Dataset& data,
                                   worker::ComputeBackend& backend, std::int64_t batch);

  std::size_t weights_expected() const { return models_.front()->layout().size(); }

  // Of what training keeps beside the weights.
  std::size_t local_state_expected() const { return models_.front()->local_layout().size(); }

  // `weights` is an arena of weights_expected() floats, `local_state` one of local_state_expected().
  Score run(std::span<const float> weights, std::span<const float> local_state = {});

 private:
  Evaluation(const worker::Dataset& data, worker::ComputeBackend& backend, std::int64_t batch)
      : data_(&data), backend_(&backend), batch_(batch) {}

  worker::BatchView read(std::int64_t begin, std::int64_t size);

  const worker::Dataset* data_;
  worker::ComputeBackend* backend_;
  std::int64_t batch_;
  std::vector<std::unique_ptr<worker::Model>> models_;  // for full batches, and for the rest
  std::vector<std::int64_t> indices_;
  std::vector<float> values_;
  std::vector<int> ids_, labels_;
};

}  // namespace syncopate::experiments
