// Pipelines of threads against one worker that has the whole model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/cluster.h"
#include "tests/worker/pipeline/staged_model.h"
#include "tests/worker/tensor_helpers.h"
#include "tests/worker/whole_training.h"
#include "worker/model.h"

namespace syncopate::worker {
namespace {

using testing::HasSubstr;
using testing_support::connect_group;
using testing_support::run_ranks;

constexpr int kSamples = 12, kSteps = 3;
const OptimizerConfig kMomentum{.kind = OptimizerKind::kMomentum, .momentum = 0.9f};

struct Job {
  std::string spec = "mlp:12-9-8-7-5";
  SampleForm form = image_form();
  PipelineSchedule schedule = PipelineSchedule::kOneForwardOneBackward;
  int stages = 2;
  int microbatches = 4;
  int empty = 0;  // places without a sample
  std::string wire = "inproc";
  int chunks = 1;
};

struct Trained {
  std::vector<float> weights;
  std::vector<double> losses;
  std::vector<int> correct;
  // By stage, of the last step.
  std::vector<SyncStats> costs;
  std::vector<std::vector<std::size_t>> reported;
};

// Weights are gathered before every step but the first.
Trained train_staged(const Job& job, int steps = kSteps, bool knows_end = true) {
  Trained trained{.costs = std::vector<SyncStats>(static_cast<std::size_t>(job.stages)),
                  .reported = std::vector<std::vector<std::size_t>>(static_cast<std::size_t>(job.stages))};
  const SteadyClock clock;
  std::vector<std::unique_ptr<Transport>> transports = connect_group(job.wire, job.stages);
  run_ranks(job.stages, [&](int rank) {
    const PipelinePlace place{job.schedule, job.stages, rank, job.microbatches, job.chunks};
    TestStage stage(job.spec, job.form, place, kSamples, kMomentum, *transports[static_cast<std::size_t>(rank)], clock,
                    std::chrono::seconds(60), knows_end ? steps : 0);
    const auto well = [&](const Status& status) {
      if (!status.ok()) ADD_FAILURE() << "stage " << rank << ": " << status.message();
    };
    well(stage.join());
    DrawnBatches batches(job.form, kSamples);
    for (int step = 0; step < steps; ++step) {
      if (step > 0) well(stage.strategy().gather_weights(true));
      const Result<SyncStats> stats = stage.step(step, batches.next(job.empty));
      if (!stats.ok()) ADD_FAILURE() << "stage " << rank << ": " << stats.status().message();
      if (!stats.ok()) return;
      trained.costs[static_cast<std::size_t>(rank)] = *stats;
      trained.reported[static_cast<std::size_t>(rank)] = stage.reported();
      if (!place.is_last()) continue;
      trained.losses.push_back(stage.model().loss(0).loss);
      trained.correct.push_back(stage.model().loss(0).correct);
    }
    well(stage.strategy().gather_weights(rank == 0));
    well(stage.strategy().leave());
    if (rank == 0) trained.weights.assign(stage.weights().begin(), stage.weights().end());
  });
  return trained;
}

// The same on one worker.
WholeTraining train_whole(const Job& job) {
  return train_whole(job.spec, job.form, kSamples, job.empty, kSteps, kMomentum);
}

std::string text_of(const Job& job) {
  return job.spec + ", S = " + std::to_string(job.stages) + ", M = " + std::to_string(job.microbatches) + ", " +
         name_of(job.schedule) + ", V = " + std::to_string(job.chunks) + ", " + job.wire;
}

void expect_equal(const Job& job) {
  SCOPED_TRACE(text_of(job));
  const Trained staged = train_staged(job);
  const WholeTraining whole = train_whole(job);
  ASSERT_EQ(staged.weights.size(), whole.weights.size());
  for (std::size_t i = 0; i < whole.weights.size(); ++i) {
    ASSERT_NEAR(staged.weights[i], whole.weights[i], 2e-6) << "weight " << i;
  }
  ASSERT_EQ(staged.losses.size(), whole.losses.size());
  for (std::size_t i = 0; i < whole.losses.size(); ++i) EXPECT_NEAR(staged.losses[i], whole.losses[i], 1e-6);
  EXPECT_EQ(staged.correct, whole.correct);
}

TEST(PipelinedTraining, FollowsAWorkerThatHasTheWholeModel) {
  for (const PipelineSchedule schedule :
       {PipelineSchedule::kGpipe, PipelineSchedule::kOneForwardOneBackward, PipelineSchedule::kZeroBubble}) {
    for (const int stages : {2, 3, 4}) {
      for (const int microbatches : {1, 2, 3, 4, 12}) {
        expect_equal({.schedule = schedule, .stages = stages, .microbatches = microbatches});
      }
    }
  }
}

TEST(PipelinedTraining, FollowsItWithSeveralChunksAStage) {
  for (const auto& [stages, chunks] : {std::pair{2, 2}, {2, 3}, {3, 2}}) {
    for (const int microbatches : {6, 12}) {
      expect_equal({.spec = "mlp:12-9-8-7-6-6-5",
                    .schedule = PipelineSchedule::kInterleaved,
                    .stages = stages,
                    .microbatches = microbatches,
                    .chunks = chunks});
    }
  }
}

TEST(PipelinedTraining, FollowsItOfTextsWhoseOutputSharesTheFirstStagesTokens) {
  for (const PipelineSchedule schedule :
       {PipelineSchedule::kGpipe, PipelineSchedule::kOneForwardOneBackward, PipelineSchedule::kZeroBubble}) {
    for (const int stages : {2, 4}) {
      for (const int microbatches : {1, 4}) {
        expect_equal({.spec = "gpt:2-2-8",
                      .form = text_form(),
                      .schedule = schedule,
                      .stages = stages,
                      .microbatches = microbatches});
      }
    }
  }
}

TEST(PipelinedTraining, FollowsItOfTextsInSeveralChunks) {
  for (const int chunks : {2, 3}) {
    expect_equal({.spec = "gpt:2-2-8",
                  .form = text_form(),
                  .schedule = PipelineSchedule::kInterleaved,
                  .microbatches = 4,
                  .chunks = chunks});
  }
}

TEST(PipelinedTraining, FollowsItOfConvolutions) {
  const SampleForm form = form_of_images({16, 16, 1}, 5);
  expect_equal({.spec = "lenet", .form = form, .stages = 3, .microbatches = 3});
  expect_equal(
      {.spec = "lenet", .form = form, .schedule = PipelineSchedule::kZeroBubble, .stages = 3, .microbatches = 4});
  expect_equal({.spec = "lenet",
                .form = form,
                .schedule = PipelineSchedule::kInterleaved,
                .stages = 2,
                .microbatches = 4,
                .chunks = 2});
}

TEST(PipelinedTraining, FollowsItWhereTheLastPlacesAreEmpty) {
  for (const int empty : {1, 5, 11}) expect_equal({.microbatches = 4, .empty = empty});
}

TEST(PipelinedTraining, FollowsItOverEveryWire) {
  for (const std::string& wire : testing_support::all_wires()) {
    expect_equal({.spec = "gpt:2-2-8", .form = text_form(), .stages = 3, .microbatches = 4, .wire = wire});
    expect_equal({.spec = "gpt:2-2-8",
                  .form = text_form(),
                  .schedule = PipelineSchedule::kInterleaved,
                  .microbatches = 4,
                  .wire = wire,
                  .chunks = 2});
  }
}

// So that the strategy may send what is behind a tensor that is reported.
TEST(PipelinedTraining, ReportsItsTensorsFromTheLastToTheFirstAndThenWhatItBorrows) {
  for (const auto& [schedule, chunks] : {std::pair{PipelineSchedule::kGpipe, 1},
                                         {PipelineSchedule::kOneForwardOneBackward, 1},
                                         {PipelineSchedule::kInterleaved, 2},
                                         {PipelineSchedule::kZeroBubble, 1}}) {
    const Job job{.spec = "gpt:2-2-8", .form = text_form(), .schedule = schedule, .microbatches = 4, .chunks = chunks};
    SCOPED_TRACE(text_of(job));
    const ChainFacts facts = *chain_facts(job.spec, job.form);
    const StageCut cut = *cut_into_stages(facts.layers, facts.layout, job.stages, chunks);
    const Trained staged = train_staged(job);
    for (int stage = 0; stage < job.stages; ++stage) {
      std::vector<std::size_t> own;
      for (int number = (chunks - 1) * job.stages + stage; number >= 0; number -= job.stages) {
        const auto at = static_cast<std::size_t>(number);
        for (std::size_t tensor = cut.tensors[at + 1]; tensor > cut.tensors[at]; --tensor) own.push_back(tensor - 1);
      }
      if (stage == 1) own.push_back(0);  // the tokens
      EXPECT_EQ(staged.reported[static_cast<std::size_t>(stage)], own) << stage;
    }
  }
}

// What one worker that has the whole model comes to by these updates.
class Updates {
 public:
  explicit Updates(Model& model) {
    arenas_ = *strategy_.allocate(model.layout());
    model.initialize(1, arenas_.weights);
    EXPECT_TRUE(strategy_.join().ok());
  }
  std::vector<float> weights() const { return {arenas_.weights.begin(), arenas_.weights.end()}; }
  void add(const std::vector<float>& gradient) {
    strategy_.begin_step({.step = made_++, .learning_rate = 0.05});
    std::ranges::copy(gradient, arenas_.gradients.begin());
    EXPECT_TRUE(strategy_.finish_step().ok());
  }

 private:
  const SteadyClock clock_;
  LocalStrategy strategy_{kMomentum, clock_};
  ParamArenas arenas_;
  std::int64_t made_ = 0;
};

// PipeDream's algorithm, on one worker (Narayanan et al. 2019, section 3.3): each stage makes both passes of batch b
// with the weights that it has had when it had made its updates of the batches before b - (S - s - 1), and then the
// update of batch b; but if the job's end is known, the last one is of all batches that are left.
std::vector<float> stash_on_one_worker(const Job& job, int steps, bool knows_end) {
  const auto backend = make_reference_backend();
  const std::unique_ptr<Model> model = std::move(*make_model(job.spec, job.form, kSamples, *backend));
  const ChainFacts facts = *chain_facts(job.spec, job.form);
  const StageCut cut = *cut_into_stages(facts.layers, facts.layout, job.stages);
  std::vector<std::vector<float>> gradients;  // by batch
  std::vector<float> weights(facts.layout.size());
  // Takes each stage after its updates of so many batches but those of the last S - s - 1.
  const auto assemble = [&](int batches, bool is_end) {
    for (int stage = 0; stage < job.stages; ++stage) {
      Updates updates(*model);
      const int made = std::max(0, batches - (job.stages - stage - 1) - (is_end ? 1 : 0));
      for (int batch = 0; batch < made; ++batch) updates.add(gradients[static_cast<std::size_t>(batch)]);
      if (is_end) {
        std::vector<float> sum(weights.size());
        for (std::size_t batch = static_cast<std::size_t>(made); batch < gradients.size(); ++batch) {
          std::ranges::transform(sum, gradients[batch], sum.begin(), std::plus());
        }
        updates.add(sum);
      }
      const Range own = cut.chunk(stage, facts.layout);
      const std::vector<float> its = updates.weights();
      std::ranges::copy(slice(std::span(its), own), slice(std::span(weights), own).begin());
    }
  };
  DrawnBatches batches(job.form, kSamples);
  for (int batch = 0; batch < steps; ++batch) {
    assemble(batch, false);
    model->forward(weights, batches.next(job.empty));
    std::vector<float>& gradient = gradients.emplace_back(weights.size());
    model->backward(weights, gradient, [](std::size_t) {});
  }
  assemble(steps, knows_end);
  return weights;
}

TEST(PipelinedTraining, WithStashedWeightsIsPipeDreamsAlgorithm) {
  for (const auto& [stages, wire] : {std::pair{2, "inproc"}, {3, "shm"}, {4, "sockets"}}) {
    for (const int steps : {1, 3, 9}) {
      for (const bool knows_end : {true, false}) {
        const Job job{.schedule = PipelineSchedule::kPipedream, .stages = stages, .microbatches = 1, .wire = wire};
        SCOPED_TRACE(text_of(job) + ", steps " + std::to_string(steps) + (knows_end ? ", its end known" : ""));
        const Trained staged = train_staged(job, steps, knows_end);
        const std::vector<float> reference = stash_on_one_worker(job, steps, knows_end);
        ASSERT_EQ(staged.weights.size(), reference.size());
        for (std::size_t i = 0; i < reference.size(); ++i) {
          ASSERT_NEAR(staged.weights[i], reference[i], 2e-6) << "weight " << i;
        }
        for (int stage = 0; steps == 9 && stage < stages; ++stage) {
          EXPECT_EQ(staged.costs[static_cast<std::size_t>(stage)].staleness_max, stages - stage - 1);
        }
      }
    }
  }
}

// In one microbatch nothing is summed in another order.
TEST(PipelinedTraining, HasTheSameBitsWithOneMicrobatch) {
  const Job job{.stages = 3, .microbatches = 1};
  const Trained staged = train_staged(job);
  const WholeTraining whole = train_whole(job);
  EXPECT_THAT(staged.weights, testing::ElementsAreArray(whole.weights));
  EXPECT_EQ(staged.losses, whole.losses);
}

// A batch norm has the moments of a microbatch: with one of them, those of the batch.
TEST(PipelinedTraining, NormalisesByTheMomentsOfAMicrobatch) {
  const Job one{.spec = "resnet20", .form = form_of_images({8, 8, 3}, 5), .stages = 3, .microbatches = 1};
  expect_equal(one);
  Job split = one;
  split.schedule = PipelineSchedule::kZeroBubble;
  expect_equal(split);
  Job two = one;
  two.microbatches = 2;
  const Trained staged = train_staged(two);
  const WholeTraining whole = train_whole(two);
  EXPECT_NE(staged.losses.back(), whole.losses.back());
  EXPECT_NEAR(staged.losses.back(), whole.losses.back(), 1);
}

// Activations there and their gradients back, of each sample once, whatever the microbatches.
TEST(PipelinedTraining, SendsActivationsAndTheirGradients) {
  for (const int microbatches : {1, 4}) {
    const Trained staged = train_staged({.stages = 4, .microbatches = microbatches});
    const std::vector<std::int64_t> widths{9, 8, 7};
    for (std::size_t stage = 0; stage < 4; ++stage) {
      const std::int64_t behind = stage < 3 ? widths[stage] : 0, before = stage > 0 ? widths[stage - 1] : 0;
      EXPECT_EQ(staged.costs[stage].bytes_out, 4 * kSamples * (behind + before)) << stage;
      EXPECT_EQ(staged.costs[stage].bytes_in, 4 * kSamples * (behind + before)) << stage;
    }
  }
}

// Each cut is between two stages, and has its messages.
TEST(PipelinedTraining, SendsAsMuchMoreAsThereAreCutsBetweenChunks) {
  const Trained staged = train_staged(
      {.spec = "mlp:12-9-8-7-5", .schedule = PipelineSchedule::kInterleaved, .microbatches = 4, .chunks = 2});
  for (const SyncStats& costs : staged.costs) {
    EXPECT_EQ(costs.bytes_out, 4 * kSamples * (9 + 8 + 7));
    EXPECT_EQ(costs.bytes_in, 4 * kSamples * (9 + 8 + 7));
  }
}

// The tokens' gradient to their owner, and their new weights back.
TEST(PipelinedTraining, SendsWhatStagesShare) {
  const Trained staged = train_staged({.spec = "gpt:2-2-8", .form = text_form()});
  const std::int64_t activations = 4 * kSamples * 6 * 8, tokens = 4 * 11 * 8;
  for (const SyncStats& costs : staged.costs) {
    EXPECT_EQ(costs.bytes_out, activations + tokens);
    EXPECT_EQ(costs.bytes_in, activations + tokens);
  }
}

// Notes the microbatches that it is given.
class NotingStage final : public StageModel {
 public:
  NotingStage(const ParamLayout& layout, std::vector<BatchView>& given) : layout_(layout), given_(given) {}
  const std::string& name() const override { return name_; }
  const ParamLayout& layout() const override { return layout_; }
  const ParamLayout& local_layout() const override { return none_; }
  std::span<float> local_state() override { return {}; }
  int batch_size() const override { return 1; }
  double flops_per_sample() const override { return 0; }
  void initialize(std::uint64_t, std::span<float>) const override {}
  void forward(In, const BatchView& batch) override { given_.push_back(batch); }
  void before_reading(std::function<void(Range)>) override {}
  void backward(In, Out, const std::function<void(std::size_t)>& ready) override { ready(0); }
  LossAndCorrect loss(std::size_t) override { return {.loss = 0.25, .correct = 2}; }
  In outputs() const override { return {}; }
  Out output_gradient() override { return {}; }
  In input_gradient() const override { return {}; }

 private:
  const std::string name_ = "noting";
  const ParamLayout layout_, none_;
  std::vector<BatchView>& given_;
};

TEST(PipelinedTraining, CutsABatchIntoItsMicrobatches) {
  const SteadyClock clock;
  std::vector<std::unique_ptr<Transport>> transports = connect_group("inproc", 2);
  StageLinks links(*transports[0], {}, clock);
  const auto backend = make_reference_backend();
  ParamLayout layout;
  layout.add("weight", {3});
  std::vector<BatchView> given;
  auto stage = std::make_unique<NotingStage>(layout, given);
  std::vector<std::vector<StageSlot>> slots(1);
  slots[0].push_back({stage.get(), std::move(stage)});
  PipelinedModel model({.microbatches = 3}, {.layers = {0, 1}, .tensors = {0, 1}, .shared = {}}, 6, std::move(slots),
                       *backend);
  model.connect(&links);
  const std::vector<float> values(12), weights(layout.size());
  const std::vector<int> labels(6), ids(24);
  std::vector<float> gradients(layout.size());
  int reported = 0;
  model.forward(weights, {.values = values, .labels = labels, .ids = ids, .empty_places = 3, .weight = 1.5});
  model.backward(weights, gradients, [&](std::size_t) { ++reported; });
  ASSERT_EQ(given.size(), 3u);
  const std::vector<int> empty{0, 1, 2};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(given[i].values.data(), values.data() + 4 * i);
    EXPECT_EQ(given[i].values.size(), 4u);
    EXPECT_EQ(given[i].labels.data(), labels.data() + 2 * i);
    EXPECT_EQ(given[i].ids.size(), 8u);
    EXPECT_EQ(given[i].empty_places, empty[i]);
    EXPECT_DOUBLE_EQ(given[i].weight, 0.5);
  }
  EXPECT_EQ(reported, 1) << "in the backward of the last";
  EXPECT_DOUBLE_EQ(model.loss(0).loss, 0.75);
  EXPECT_EQ(model.loss(0).correct, 6);
}

TEST(PipelinedTraining, TouchesNoMemoryOfOtherStages) {
  const auto backend = make_reference_backend();
  const SampleForm form = form_of_images({16, 16, 1}, 5);
  const ChainFacts facts = *chain_facts("mlp:256-1024-1024-1024-1024-5", form);
  const StageCut cut = *cut_into_stages(facts.layers, facts.layout, 4);
  const auto stage = make_stage("mlp:256-1024-1024-1024-1024-5", form, cut, {.stages = 4, .stage = 1}, 2, *backend);
  ASSERT_TRUE(stage.ok());
  // Its outputs, both gradients, and nothing of the other layers.
  EXPECT_LE(backend->allocated(), 3 * 2 * 1024 * sizeof(float));
}

TEST(PipelinedTraining, SaysWhichWorkerItWaitedFor) {
  const SteadyClock clock;
  std::vector<std::unique_ptr<Transport>> transports = connect_group("inproc", 2);
  TestStage stage("mlp:12-9-5", image_form(), {.stages = 2, .stage = 1, .microbatches = 2}, kSamples, kMomentum,
                  *transports[1], clock, std::chrono::milliseconds(20));
  ASSERT_TRUE(stage.join().ok());
  DrawnBatches batches(image_form(), kSamples);
  const Result<SyncStats> stats = stage.step(5, batches.next());
  EXPECT_EQ(stats.status().code(), Code::kDeadlineExceeded);
  EXPECT_THAT(stats.status().message(), HasSubstr("step 5: waiting for activations of worker 10 (stage 0)"));
}

TEST(PipelinedTraining, EndsWhenItIsInterruptedOrANeighbourIsGone) {
  for (const bool is_gone : {true, false}) {
    const SteadyClock clock;
    std::vector<std::unique_ptr<Transport>> transports = connect_group("sockets", 2);
    TestStage stage("mlp:12-9-5", image_form(), {.stages = 2, .stage = 1, .microbatches = 2}, kSamples, kMomentum,
                    *transports[1], clock, std::chrono::seconds(60));
    ASSERT_TRUE(stage.join().ok());
    if (is_gone) {
      transports[0].reset();
    } else {
      transports[1]->interrupt();
    }
    DrawnBatches batches(image_form(), kSamples);
    const Result<SyncStats> stats = stage.step(0, batches.next());
    EXPECT_EQ(stats.status().code(), is_gone ? Code::kPeerLost : Code::kCancelled) << stats.status().message();
  }
}

}  // namespace
}  // namespace syncopate::worker
