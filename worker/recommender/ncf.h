// Ncf: neural matrix factorisation (He et al. 2017, "Neural Collaborative Filtering", section 3.4 and figure 3).
//
// A row has two halves. The first halves of user and item are multiplied, element by element; the second halves are
// concatenated and go through the tower; the head makes a logit of both results. The tower has three layers: the first
// is as wide as its input, and each of the others half as wide as the one before (section 3.3, whose example is 32, 16,
// 8 over embeddings of 16, as section 4.1 sets it; the paper calls the width of the last one predictive factors).
#pragma once

#include <algorithm>

#include "worker/recommender/recommender.h"

namespace syncopate::worker {

class Ncf final : public Recommender {
 public:
  static int row_width(const RecommenderShape& shape) { return 2 * shape.dimensions; }

  Ncf(const RecommenderShape& shape, const SampleForm& form, ComputeBackend& backend)
      : Recommender(shape, form,
                    {.row = row_width(shape),
                     .tower_input = 2 * shape.dimensions,
                     .tower = {2 * shape.dimensions, shape.dimensions, std::max(1, shape.dimensions / 2)},
                     .beside_tower = shape.dimensions},
                    backend),
        half_(static_cast<std::size_t>(shape.dimensions)) {}

 private:
  void combine(ConstFloats /*values*/, ConstFloats rows, const Parts& to) const override {
    const ConstFloats user = rows.first(2 * half_), item = rows.last(2 * half_);
    for (std::size_t i = 0; i < half_; ++i) {
      to.beside_tower[i] = user[i] * item[i];
      to.tower_input[i] = user[half_ + i];
      to.tower_input[half_ + i] = item[half_ + i];
    }
    to.logit = 0;
  }

  void separate(ConstFloats rows, const Parts& gradients, Floats to) const override {
    const ConstFloats user = rows.first(2 * half_), item = rows.last(2 * half_);
    const Floats of_user = to.first(2 * half_), of_item = to.last(2 * half_);
    for (std::size_t i = 0; i < half_; ++i) {
      of_user[i] = gradients.beside_tower[i] * item[i];
      of_item[i] = gradients.beside_tower[i] * user[i];
      of_user[half_ + i] = gradients.tower_input[i];
      of_item[half_ + i] = gradients.tower_input[half_ + i];
    }
  }

  std::size_t half_;
};

}  // namespace syncopate::worker
