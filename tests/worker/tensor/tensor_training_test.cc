// Workers that have parts of layers, as threads, against one that has the whole model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/cluster.h"
#include "tests/worker/drawn_batches.h"
#include "tests/worker/tensor/thread_group.h"
#include "tests/worker/whole_training.h"
#include "worker/local_strategy.h"
#include "worker/tensor/tensor_model.h"
#include "worker/tensor/tensor_strategy.h"

namespace syncopate::worker {
namespace {

using testing::HasSubstr;
using testing_support::run_ranks;

constexpr int kSamples = 12, kSteps = 3;
const OptimizerConfig kMomentum{.kind = OptimizerKind::kMomentum, .momentum = 0.9f};

struct Job {
  std::string spec = "mlp:12-8-9-8-7-5";
  SampleForm form = image_form();
  int parts = 2;
  int empty = 0;  // places without a sample
};

struct Trained {
  std::vector<float> weights;
  std::vector<double> losses;
  std::vector<int> correct;
  // By worker.
  std::vector<std::vector<float>> own;  // arenas
  std::vector<SyncStats> costs;         // of the last step
  std::vector<int> sums;                // of all steps
  std::vector<TrainingState> states;
  SplitLayout layout;
};

// A worker with its part, trained as worker::train() trains a model.
class TestWorker {
 public:
  TestWorker(const Job& job, ThreadGroupState& state, int part)
      : backend_(make_reference_backend()),
        group_(state, part),
        links_(group_, clock_, nullptr),
        model_(std::move(*make_split_model(job.spec, job.form, {part, job.parts}, kSamples, *backend_)), part),
        strategy_(make_tensor_strategy(std::make_unique<LocalStrategy>(kMomentum, clock_), model_.split(),
                                       /*gathers=*/true, links_)) {
    model_.sums().links = &links_;
  }

  void begin(const TrainingState* restored) {
    arenas_ = *strategy_->allocate(model_.layout());
    if (restored != nullptr) {
      EXPECT_TRUE(strategy_->resumable()->restore(*restored).ok());
    } else {
      model_.initialize(1, arenas_.weights);
    }
    EXPECT_TRUE(strategy_->join().ok());
  }

  Result<SyncStats> step(std::int64_t number, const BatchView& batch) {
    strategy_->begin_step({.step = number, .learning_rate = 0.05});
    EXPECT_TRUE(strategy_->job_weights().values.empty()) << "a step has no memory of all weights";
    model_.forward(arenas_.weights, batch);
    model_.backward(arenas_.weights, arenas_.gradients, [](std::size_t) {});
    return strategy_->finish_step();
  }

  TensorModel& model() { return model_; }
  SyncStrategy& strategy() { return *strategy_; }
  const ThreadGroup& group() const { return group_; }
  std::span<const float> weights() const { return arenas_.weights; }

 private:
  const SteadyClock clock_;
  const std::unique_ptr<ComputeBackend> backend_;
  ThreadGroup group_;
  TensorLinks links_;
  TensorModel model_;
  const std::unique_ptr<SyncStrategy> strategy_;
  ParamArenas arenas_;
};

// Weights are gathered before every step but the first.
Trained train_parts(const Job& job, const TrainingState* restored = nullptr, int first_step = 0) {
  const auto parts = static_cast<std::size_t>(job.parts);
  Trained trained{.own = std::vector<std::vector<float>>(parts),
                  .costs = std::vector<SyncStats>(parts),
                  .sums = std::vector<int>(parts),
                  .states = std::vector<TrainingState>(parts)};
  ThreadGroupState state(job.parts);
  run_ranks(job.parts, [&](int part) {
    const auto at = static_cast<std::size_t>(part);
    TestWorker worker(job, state, part);
    worker.begin(restored);
    DrawnBatches batches(job.form, kSamples);
    for (int step = 0; step < first_step; ++step) batches.next(job.empty);
    for (int step = first_step; step < kSteps; ++step) {
      if (step > first_step) EXPECT_TRUE(worker.strategy().gather_weights(true).ok());
      const Result<SyncStats> stats = worker.step(step, batches.next(job.empty));
      ASSERT_TRUE(stats.ok()) << stats.status().message();
      trained.costs[at] = *stats;
      if (!worker.model().has_loss()) continue;
      trained.losses.push_back(worker.model().loss(0).loss);
      trained.correct.push_back(worker.model().loss(0).correct);
    }
    EXPECT_TRUE(worker.strategy().resumable()->save(trained.states[at]).ok());
    EXPECT_TRUE(worker.strategy().gather_weights(part == 0).ok());
    EXPECT_TRUE(worker.strategy().leave().ok());
    const std::span<const float> whole = worker.strategy().job_weights().values;
    EXPECT_EQ(whole.empty(), part > 0);
    if (part == 0) trained.weights.assign(whole.begin(), whole.end());
    if (part == 0) trained.layout = worker.model().split();
    trained.own[at].assign(worker.weights().begin(), worker.weights().end());
    trained.sums[at] = worker.group().sums;
    EXPECT_EQ(worker.group().largest, worker.group().sums > 0 ? worker.model().sums().largest : 0u);
  });
  return trained;
}

// The same on one worker.
WholeTraining train_whole(const Job& job) {
  return train_whole(job.spec, job.form, kSamples, job.empty, kSteps, kMomentum);
}

void expect_near(std::span<const float> values, std::span<const float> expected, float tolerance) {
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(values[i], expected[i], tolerance) << "weight " << i;
}

void expect_equal(const Job& job) {
  SCOPED_TRACE(job.spec + ", T = " + std::to_string(job.parts));
  const Trained split = train_parts(job);
  const WholeTraining whole = train_whole(job);
  EXPECT_EQ(split.layout.whole().hash(), model_layout(job.spec, job.form)->hash());
  expect_near(split.weights, whole.weights, 2e-6f);
  ASSERT_EQ(split.losses.size(), whole.losses.size());
  for (std::size_t i = 0; i < whole.losses.size(); ++i) EXPECT_NEAR(split.losses[i], whole.losses[i], 1e-6);
  EXPECT_EQ(split.correct, whole.correct);
}

TEST(TensorTraining, FollowsAWorkerThatHasTheWholeModel) {
  for (const int parts : {1, 2, 4}) expect_equal({.parts = parts});
  expect_equal({.spec = "mlp:12-9-6-6-5", .parts = 3});  // an even number of layers
  expect_equal({.spec = "mlp:12-8-5:init=glorot", .parts = 8});
}

TEST(TensorTraining, FollowsItOfTexts) {
  for (const int parts : {1, 2, 4}) expect_equal({.spec = "gpt:2-4-8", .form = text_form(), .parts = parts});
}

TEST(TensorTraining, FollowsItOfConvolutionsUnderDenseLayers) {
  expect_equal({.spec = "lenet", .form = form_of_images({16, 16, 1}, 5)});
  expect_equal({.spec = "conv:4-8", .form = form_of_images({8, 8, 1}, 5), .parts = 4});
}

TEST(TensorTraining, FollowsItWhereTheLastPlacesAreEmpty) {
  expect_equal({.empty = 5});
  expect_equal({.spec = "gpt:1-2-8", .form = text_form(), .empty = 5});
}

// What is whole on all workers has the same bits on all.
TEST(TensorTraining, KeepsWhatAllHaveTheSameToTheBit) {
  for (const Job& job : {Job{.parts = 4}, Job{.spec = "gpt:2-4-8", .form = text_form(), .parts = 4}}) {
    const Trained split = train_parts(job);
    int whole = 0;
    for (std::size_t tensor = 0; tensor < split.layout.own().tensors().size(); ++tensor) {
      if (!split.layout.share(tensor).is_whole()) continue;
      ++whole;
      const Range range = split.layout.own().tensors()[tensor].range;
      for (const std::vector<float>& own : split.own) {
        EXPECT_THAT(slice(std::span(own), range), testing::ElementsAreArray(slice(std::span(split.own[0]), range)));
      }
    }
    EXPECT_GT(whole, 0);
  }
}

// A worker has one in T of the weights that are in pairs of layers.
TEST(TensorTraining, HasItsSharesAlone) {
  const Trained split = train_parts({.spec = "mlp:12-8-9-8-5", .parts = 4});
  const std::size_t pairs = 12 * 8 + 8 + 8 * 9 + 9 * 8 + 8 + 8 * 5, biases = 9 + 5;
  EXPECT_EQ(split.layout.whole().parameter_count(), pairs + biases);
  EXPECT_EQ(split.layout.own().parameter_count(), pairs / 4 + biases);
  const Trained text = train_parts({.spec = "gpt:2-4-8", .form = text_form(), .parts = 4});
  const std::size_t whole = 11 * 8 + 6 * 8 + 2 * 8 + 2 * 6 * 8;  // embedding, last norm; norms and biases of blocks
  const std::size_t divided = 2 * (3 * 8 * 8 + 3 * 8 + 8 * 8 + 4 * 8 * 8 + 4 * 8 + 4 * 8 * 8);
  EXPECT_EQ(text.layout.whole().parameter_count(), whole + divided);
  EXPECT_EQ(text.layout.own().parameter_count(), whole + divided / 4);
}

// Two sums a pair and step, of the pair's outputs and of the gradient of its inputs, but that nobody needs that of the
// model's inputs.
TEST(TensorTraining, SumsAndSendsAsTheFormulaSays) {
  for (const int parts : {2, 4}) {
    const auto expect = [&](const Job& job, int sums, std::int64_t values) {
      const Trained split = train_parts(job);
      for (std::size_t part = 0; part < static_cast<std::size_t>(parts); ++part) {
        EXPECT_EQ(split.sums[part], kSteps * sums);
        EXPECT_EQ(split.costs[part].bytes_out, 2 * (parts - 1) * 4 * kSamples * values / parts);
        EXPECT_EQ(split.costs[part].bytes_in, split.costs[part].bytes_out);
      }
    };
    expect({.spec = "mlp:12-8-9-8-7-5", .parts = parts}, 3, 9 + 9 + 7);
    expect({.spec = "gpt:2-4-8", .form = text_form(), .parts = parts}, 8, 8 * 6 * 8);
  }
}

// Parts of the state make one of the whole model, from which any number of parts goes on, with the same bits if it is
// the same number.
TEST(TensorTraining, SavesItsSharesOfAStateThatAnyNumberOfPartsGoesOnFrom) {
  for (const Job& job : {Job{.parts = 4}, Job{.spec = "gpt:1-4-8", .form = text_form(), .parts = 4}}) {
    const Trained split = train_parts(job);
    const WholeTraining whole = train_whole(job);
    TrainingState all;
    for (const TrainingState& each : split.states) {
      for (const std::string& name : each.names()) {
        for (const Range& piece : each.pieces(name)) EXPECT_FALSE(all.overlaps(name, piece)) << "written once";
      }
      all.merge(each);
    }
    EXPECT_EQ(all.step, whole.state.step);
    EXPECT_EQ(all.names(), whole.state.names());
    for (const std::string& name : all.names()) {
      std::vector<float> values(whole.weights.size()), expected(values.size());
      ASSERT_TRUE(all.read(name, {0, values.size()}, values).ok()) << name << ", with what is between tensors";
      ASSERT_TRUE(whole.state.read(name, {0, values.size()}, expected).ok());
      expect_near(values, expected, name == state_part::kWeights ? 2e-6f : 1e-5f);
    }
    for (const int parts : {1, 2, 4}) {
      Job other = job;
      other.parts = parts;
      const Trained on = train_parts(other, &all, kSteps);  // it trains no step
      EXPECT_THAT(on.weights, testing::ElementsAreArray(split.weights)) << parts;
    }
  }
}

TEST(TensorTraining, MissesAPieceOfAState) {
  const Job job;
  const Trained split = train_parts(job);
  const SplitLayout& layout = split.layout;
  EXPECT_EQ(layout.own_state(split.states[1]).status().code(), Code::kDataLoss);
}

TEST(TensorTraining, RefusesLayersThatCannotBeDivided) {
  const auto refusal = [](const std::string& spec, const SampleForm& form, int parts) {
    const auto backend = make_reference_backend();
    return make_split_model(spec, form, {0, parts}, kSamples, *backend).status().message();
  };
  EXPECT_EQ(refusal("mlp:12-9-5", image_form(), 2),
            "--model=mlp:12-9-5: dense1 has 9 outputs, of which 2 workers cannot have as many each; use a multiple of "
            "2");
  EXPECT_THAT(refusal("mlp:12-8-5-3-5", image_form(), 8), HasSubstr("dense3 has 3 outputs"));
  EXPECT_EQ(refusal("gpt:1-2-8", text_form(), 4),
            "--model=gpt:1-2-8: its 2 heads cannot be divided among 4 workers "
            "alike");
  for (const std::string spec : {"softmax", "mlp:12-5"}) {
    EXPECT_THAT(refusal(spec, image_form(), 2), HasSubstr("has no two dense layers in a row and no attention"));
  }
  EXPECT_THAT(refusal("resnet20", form_of_images({8, 8, 3}, 5), 2), HasSubstr("has no two dense layers in a row"));
}

// Fails from its second sum on.
class BrokenGroup final : public TensorGroup {
 public:
  int rank() const override { return 0; }
  int size() const override { return 2; }
  Status sum(std::span<float>) override {
    return ++calls == 1 ? Status() : Status::deadline_exceeded("waiting for worker 7");
  }
  Status broadcast(std::span<float>, int) override { return sum({}); }
  TransportCounters counters() const override { return {}; }
  int calls = 0;
};

TEST(TensorTraining, EndsAStepOfWhichASumHasFailed) {
  const SteadyClock clock;
  const auto backend = make_reference_backend();
  BrokenGroup group;
  TensorLinks links(group, clock, nullptr);
  TensorModel model(std::move(*make_split_model("mlp:12-8-9-8-7-5", image_form(), {0, 2}, kSamples, *backend)), 0);
  model.sums().links = &links;
  const auto strategy =
      make_tensor_strategy(std::make_unique<LocalStrategy>(kMomentum, clock), model.split(), true, links);
  const ParamArenas arenas = *strategy->allocate(model.layout());
  ASSERT_TRUE(strategy->join().ok());
  DrawnBatches batches(image_form(), kSamples);
  strategy->begin_step({.step = 5, .learning_rate = 0.05});
  const BatchView batch = batches.next();
  model.forward(arenas.weights, batch);
  model.backward(arenas.weights, arenas.gradients, [](std::size_t) {});
  const Result<SyncStats> stats = strategy->finish_step();
  EXPECT_EQ(stats.status().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(stats.status().message(), "step 5: summing activations: waiting for worker 7");
  EXPECT_EQ(group.calls, 2) << "nothing is tried again";
  EXPECT_FALSE(strategy->gather_weights(true).ok());
}

// Sums that take their time.
class SlowGroup final : public TensorGroup {
 public:
  explicit SlowGroup(ManualClock& clock) : clock_(clock) {}
  int rank() const override { return 0; }
  int size() const override { return 2; }
  Status sum(std::span<float>) override {
    clock_.advance(std::chrono::milliseconds(10));
    return {};
  }
  Status broadcast(std::span<float> values, int) override { return sum(values); }
  TransportCounters counters() const override { return {}; }

 private:
  ManualClock& clock_;
};

TEST(TensorTraining, CountsItsWaitsByThePass) {
  ManualClock clock;
  const auto backend = make_reference_backend();
  SlowGroup group(clock);
  TensorLinks links(group, clock, nullptr);
  TensorModel model(std::move(*make_split_model("mlp:12-8-9-8-7-5", image_form(), {0, 2}, kSamples, *backend)), 0);
  model.sums().links = &links;
  const auto strategy =
      make_tensor_strategy(std::make_unique<LocalStrategy>(kMomentum, clock), model.split(), true, links);
  const ParamArenas arenas = *strategy->allocate(model.layout());
  ASSERT_TRUE(strategy->join().ok());
  DrawnBatches batches(image_form(), kSamples);
  for (int step = 0; step < 2; ++step) {
    ASSERT_TRUE(strategy->gather_weights(true).ok());  // of no step
    strategy->begin_step({.step = step, .learning_rate = 0.05});
    const BatchView batch = batches.next();
    model.forward(arenas.weights, batch);
    model.backward(arenas.weights, arenas.gradients, [](std::size_t) {});
    const Result<SyncStats> stats = strategy->finish_step();
    ASSERT_TRUE(stats.ok());
    EXPECT_EQ(stats->forward_wait, std::chrono::milliseconds(20));
    EXPECT_EQ(stats->backward_wait, std::chrono::milliseconds(10));
    EXPECT_EQ(stats->exposed_wait, std::chrono::milliseconds(30));
    EXPECT_EQ(stats->communication, std::chrono::milliseconds(30));
  }
}

}  // namespace
}  // namespace syncopate::worker
