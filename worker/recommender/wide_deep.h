// WideDeep: Cheng et al. 2016, "Wide & Deep Learning for Recommender Systems", section 3.
//
// The first number of a row is its wide weight; the wide weights of a sample's ids are summed. The other numbers are
// its embedding; the embeddings of all ids and the sample's values, concatenated, go through the tower. The logit is
// the sum of both parts.
#pragma once

#include <algorithm>

#include "worker/recommender/recommender.h"

namespace syncopate::worker {

class WideDeep final : public Recommender {
 public:
  static int row_width(const RecommenderShape& shape) { return 1 + shape.dimensions; }

  WideDeep(const RecommenderShape& shape, const SampleForm& form, ComputeBackend& backend)
      : Recommender(shape, form,
                    {.row = row_width(shape),
                     .tower_input = form.values() + form.id_columns() * shape.dimensions,
                     .tower = {256, 128, 64}},
                    backend),
        embedding_(static_cast<std::size_t>(shape.dimensions)) {}

 private:
  void combine(ConstFloats values, ConstFloats rows, const Parts& to) const override {
    auto next = std::ranges::copy(values, to.tower_input.begin()).out;
    to.logit = 0;
    for (; !rows.empty(); rows = rows.subspan(1 + embedding_)) {
      to.logit += rows.front();
      next = std::ranges::copy(rows.subspan(1, embedding_), next).out;
    }
  }

  void separate(ConstFloats rows, const Parts& gradients, Floats to) const override {
    const std::size_t ids = rows.size() / (1 + embedding_);
    ConstFloats next = gradients.tower_input.last(ids * embedding_);
    for (; !to.empty(); to = to.subspan(1 + embedding_), next = next.subspan(embedding_)) {
      to.front() = gradients.logit;
      std::ranges::copy(next.first(embedding_), to.subspan(1).begin());
    }
  }

  std::size_t embedding_;
};

}  // namespace syncopate::worker
