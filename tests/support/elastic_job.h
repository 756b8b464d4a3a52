// A job of elastic allreduce through its membership epochs, whose ranks are threads of a test: what its workers carry
// from one to the next, and what they must come to. All gradients are whole numbers, so that sums are exact in every
// order.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "allreduce/schedule/schedule.h"
#include "allreduce/strategy/allreduce_strategy.h"
#include "common/tables/row_table.h"
#include "common/training_state.h"

namespace syncopate::testing_support {

struct ElasticJob {
  allreduce::ScheduleKind kind = allreduce::ScheduleKind::kRing;
  OptimizerConfig optimizer{.kind = OptimizerKind::kMomentum, .momentum = 0.5f};
  CodecConfig codec;
  bool has_tables = false;
  allreduce::SparseExchange exchange = allreduce::SparseExchange::kRows;
  // Steps are longer by the number of workers, so that each gradient counts for the same, however many there are.
  bool rate_by_workers = false;
};

// The rank (of a membership epoch) that dies, after so many messages.
struct Death {
  int rank = 0;
  std::size_t messages = 0;
};

using States = std::map<int, TrainingState>;  // by worker, of those that have any

ParamLayout layout_of(const ElasticJob& job);
// What a worker finds for an element that is none of a table's: none for padding.
float elastic_gradient(const ParamLayout& layout, int worker, std::int64_t step, std::size_t element);

// Trains until `steps` are done, or until nothing can happen any more because one has died. `states` is what the
// workers begin with, and on return what they have come to: of those who could not save, as it was. Returns whether the
// death came before the end; without it, all must have come there.
bool train_membership_epoch(const ElasticJob& job, const std::vector<int>& workers, std::int64_t steps,
                            const std::optional<Death>& death, States& states);

// One worker's part in a membership epoch, over a collective that is there: trains until `steps` are done or it fails.
// What it has come to, if it could save.
std::optional<TrainingState> train_member(const ElasticJob& job, const std::vector<int>& workers,
                                          allreduce::Collective& collective, bool begins, const TrainingState* restored,
                                          std::int64_t steps);

// What each of a job's replicas is, by plain loops: for each step the mean over those that took part in it.
class ElasticReference {
 public:
  explicit ElasticReference(const ElasticJob& job);
  void train(const std::vector<int>& workers, std::int64_t begin, std::int64_t end);
  // Fails the test unless the state is this one, bit by bit.
  void expect(const TrainingState& state, const std::string& whose) const;

 private:
  void update_rows(const std::vector<int>& workers, const UpdateStep& update);

  const ElasticJob job_;
  const ParamLayout layout_;
  const Optimizer optimizer_;
  std::vector<float> weights_;  // of the whole arena
  OptimizerState remembered_;
  std::vector<RowTable> tables_;
  std::int64_t steps_ = 0;
};

}  // namespace syncopate::testing_support
