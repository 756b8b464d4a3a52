#include "worker/pipeline/pipelined_strategy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "tests/support/cluster.h"
#include "worker/data/image_dataset.h"
#include "worker/pipeline/stage_model.h"

namespace syncopate::worker {
namespace {

using testing_support::connect_group;
using testing_support::run_ranks;

// Keeps weights as a server does: this worker has their last values once it has asked for them, and the job's once all
// have left.
class RemoteWeights final : public SyncStrategy {
 public:
  explicit RemoteWeights(Range own) : own_(own) {}

  Result<ParamArenas> allocate(const ParamLayout& layout) override {
    values_.assign(layout.size(), 0);
    gradients_.assign(layout.size(), 0);
    return ParamArenas{.weights = values_, .gradients = gradients_};
  }
  Result<std::vector<Range>> join() override { return std::vector<Range>{own_}; }
  void begin_step(const StepContext&) override {}
  void gradient_ready(std::size_t) override {}
  Result<SyncStats> finish_step() override { return SyncStats(); }
  Status weights_needed(Range range) override {
    if (!has_left_ && overlap(range, own_)) fill(1.0f);
    return {};
  }
  Status leave() override {
    has_left_ = true;
    fill(2.0f);
    return {};
  }

 private:
  void fill(float value) { std::ranges::fill(slice(std::span<float>(values_), own_), value); }

  std::vector<float> values_, gradients_;
  const Range own_;
  bool has_left_ = false;
};

// The first stage's arena after gathering, and after leaving.
struct Gathered {
  std::vector<float> in_training, at_the_end;
};

Gathered gather(bool behind_leaving) {
  constexpr int kStages = 3;
  const ChainFacts facts = *chain_facts("mlp:12-9-8-5", form_of_images({1, 3, 4}, 5));
  const StageCut cut = *cut_into_stages(facts.layers, facts.layout, kStages);
  const SteadyClock clock;
  std::vector<std::unique_ptr<Transport>> transports = connect_group("inproc", kStages);
  Gathered gathered;
  run_ranks(kStages, [&](int rank) {
    StageLinks links(*transports[static_cast<std::size_t>(rank)], {.workers = {0, 1, 2}}, clock);
    const auto strategy = make_pipelined_strategy(std::make_unique<RemoteWeights>(cut.chunk(rank, facts.layout)),
                                                  {.place = {.stages = kStages, .stage = rank, .microbatches = 1},
                                                   .cut = cut,
                                                   .gathers_behind_leaving = behind_leaving},
                                                  links);
    const Result<ParamArenas> arenas = strategy->allocate(facts.layout);
    ASSERT_TRUE(arenas.ok() && strategy->join().ok());
    ASSERT_TRUE(strategy->gather_weights(true).ok());
    if (rank == 0) gathered.in_training.assign(arenas->weights.begin(), arenas->weights.end());
    ASSERT_TRUE(strategy->leave().ok());
    if (rank == 0) gathered.at_the_end.assign(arenas->weights.begin(), arenas->weights.end());
  });
  return gathered;
}

TEST(PipelinedStrategy, GathersWeightsThatHaveCome) { EXPECT_THAT(gather(true).in_training, testing::Each(1.0f)); }

TEST(PipelinedStrategy, GathersThoseOfTheWholeJobBehindLeaving) {
  EXPECT_THAT(gather(true).at_the_end, testing::Each(2.0f));
  EXPECT_THAT(gather(false).at_the_end, testing::Contains(1.0f));
}

}  // namespace
}  // namespace syncopate::worker
