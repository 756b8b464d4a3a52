#include "worker/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/os/aligned_buffer.h"
#include "tests/support/shadow_device.h"
#include "tests/worker/tensor_helpers.h"
#include "worker/data/image_dataset.h"
#include "worker/local_strategy.h"

namespace syncopate::worker {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

using Calls = std::vector<std::string>;

// Notes every call, advances the clock by a known time in each, and fails on demand.
class FakeStrategy final : public SyncStrategy {
 public:
  FakeStrategy(Calls& calls, ManualClock& clock, Activity& activity)
      : calls_(calls), clock_(clock), activity_(activity) {}

  Result<ParamArenas> allocate(const ParamLayout& layout) override {
    note("allocate");
    weights_ = AlignedBuffer(layout.size()), gradients_ = AlignedBuffer(layout.size());
    buckets_ = buckets_in_backward_order(layout, 1);
    return ParamArenas{weights_.span(), gradients_.span()};
  }
  Result<std::vector<Range>> join() override {
    note("join");
    found_initial_weights = weights_.data()[0] != 0;
    if (fails_in == "join") return Status::peer_lost("rank 1 is gone");
    return buckets_;
  }
  void begin_step(const StepContext& step) override {
    note("begin_step " + std::to_string(step.step));
    learning_rates.push_back(step.learning_rate);
  }
  void gradient_ready(std::size_t bucket) override {
    note("gradient_ready " + std::to_string(bucket));
    clock_.advance(takes_time);
  }
  void gradients_complete() override { note("gradients_complete"); }
  void step_given() override { note("step_given"); }
  bool runs_ahead() const override { return is_ahead; }
  Result<SyncStats> finish_step() override {
    note("finish_step");
    clock_.advance(std::chrono::milliseconds(7));
    if (fails_in == "finish_step") return Status::peer_lost("rank 1 is gone");
    SyncStats stats;
    stats.bytes_out = 99;
    stats.pass_core_wait = pass_core_wait;
    return stats;
  }
  Status weights_needed(Range range) override {
    needed.push_back(range);
    if (fails_in == "weights_needed") return Status::deadline_exceeded("no answer from shard 1");
    return Status();
  }
  JobWeights job_weights() const override { return {.are_there = true, .values = agreed}; }
  Status leave() override {
    note("leave");
    return fails_in == "leave" ? Status::deadline_exceeded("rank 1 does not answer") : Status();
  }

  std::string fails_in;
  bool is_ahead = false;
  Duration pass_core_wait{};
  Duration takes_time{};  // in gradient_ready
  bool found_initial_weights = false;
  std::vector<double> learning_rates;
  std::vector<Range> needed;
  std::vector<float> agreed;  // what it hands out, unless empty

 private:
  void note(const std::string& call) { calls_.push_back(call + " [" + activity_.operation() + "]"); }

  Calls& calls_;
  ManualClock& clock_;
  Activity& activity_;
  AlignedBuffer weights_, gradients_;
  std::vector<Range> buckets_;
};

// The same batch again and again; fetching it takes 3 ms of the manual clock.
class OneBatch final : public BatchSource {
 public:
  OneBatch(Tensor images, std::vector<int> labels, ManualClock& clock)
      : images_(std::move(images)), labels_(std::move(labels)), clock_(clock) {}
  BatchView next() override {
    clock_.advance(std::chrono::milliseconds(3));
    return {.values = images_, .labels = labels_, .costs = costs};
  }
  void seek(std::int64_t step) override { sought = step; }

  std::int64_t sought = -1;
  std::vector<float> costs;

 private:
  Tensor images_;
  std::vector<int> labels_;
  ManualClock& clock_;
};

class Records final : public RecordSink {
 public:
  void add(const StepRecord& record) override { all.push_back(record); }
  std::vector<StepRecord> all;
};

// Images of 2x2 whose label is the place of the brightest value: separable by a linear model.
Tensor bright_spots(const std::vector<int>& labels, Random& random) {
  Tensor images = random_tensor(4 * static_cast<int>(labels.size()), random);
  for (std::size_t i = 0; i < labels.size(); ++i) images[4 * i + static_cast<std::size_t>(labels[i])] += 3;
  return images;
}

class TrainerTest : public testing::Test {
 protected:
  static constexpr int kBatch = 16;

  TrainerParts parts() { return {*backend_, *model_, batches_, strategy_, records_, clock_, activity_}; }

  Status run(SyncStrategy& strategy, Straggling* straggling = nullptr) {
    return train(options_, hooks_, {*backend_, *model_, batches_, strategy, records_, clock_, activity_, straggling},
                 [this](std::span<const float>) {
                   calls_.push_back("final_weights");
                   return Status();
                 });
  }

  Random random_{2};
  Calls calls_;
  ManualClock clock_;
  Activity activity_;
  Records records_;
  std::unique_ptr<ComputeBackend> backend_ = make_reference_backend();
  std::unique_ptr<Model> model_ = std::move(*make_model("mlp:4-8-4", form_of_images({2, 2, 1}, 4), kBatch, *backend_));
  std::vector<int> labels_ = random_labels(kBatch, 4, random_);
  OneBatch batches_{bright_spots(labels_, random_), labels_, clock_};
  FakeStrategy strategy_{calls_, clock_, activity_};
  TrainerOptions options_{.chief = true, .total_steps = 1, .schedule = {}, .base_learning_rate = 0.1};
  TrainerHooks hooks_;
};

TEST_F(TrainerTest, CallsTheStrategyInItsOrderAndSaysWhatItIsDoing) {
  options_.total_steps = 2;
  ASSERT_TRUE(run(strategy_).ok());
  Calls expected{"allocate [joining]", "join [joining]"};
  for (const char* step : {"0", "1"}) {
    expected.push_back(std::string("begin_step ") + step + " [forward]");
    for (const char* bucket : {"0", "1", "2", "3"}) {
      expected.push_back(std::string("gradient_ready ") + bucket + " [backward]");
    }
    expected.push_back("gradients_complete [backward]");
    expected.push_back("step_given [backward]");
    expected.push_back("finish_step [synchronising]");
  }
  expected.insert(expected.end(), {"leave [leaving]", "final_weights"});
  EXPECT_EQ(calls_, expected);
  EXPECT_EQ(activity_.step(), 2);
}

// Each passes through the model on its own, and the strategy is given its gradients; the step is of all of them.
TEST_F(TrainerTest, PassesABatchInMicrobatchesAndRecordsItAsOne) {
  ASSERT_TRUE(run(strategy_).ok());
  const StepRecord whole = records_.all.front();
  calls_.clear();
  model_ = std::move(*make_model("mlp:4-8-4", form_of_images({2, 2, 1}, 4), kBatch / 4, *backend_));
  options_.microbatches = 4;
  ASSERT_TRUE(run(strategy_).ok());
  Calls given;
  for (const std::string& call : calls_) {
    if (call.starts_with("gradient")) given.push_back(call.substr(0, call.find(" [")));
  }
  Calls expected;
  for (int pass = 0; pass < 4; ++pass) {
    for (const char* bucket : {"0", "1", "2", "3"}) expected.push_back(std::string("gradient_ready ") + bucket);
  }
  expected.push_back("gradients_complete");
  EXPECT_EQ(given, expected);
  const StepRecord& cut = records_.all.back();
  EXPECT_EQ(cut.samples, kBatch);
  EXPECT_NEAR(cut.loss, whole.loss, 1e-6);
  EXPECT_EQ(cut.accuracy, whole.accuracy);
}

// What a pass has computed is waited for by what its own samples cost: here 1 ms for each of four buckets.
TEST_F(TrainerTest, WaitsForWhatEachMicrobatchCosts) {
  std::vector<double> waited;
  Straggling costly({.stragglers = {}, .by_cost = true}, clock_, [&](Duration duration) {
    waited.push_back(seconds(duration) * 1e3);
    clock_.advance(duration);
    return true;
  });
  batches_.costs = std::vector<float>(kBatch, 2.0f);
  std::fill_n(batches_.costs.begin(), kBatch / 2, 5.0f);
  model_ = std::move(*make_model("mlp:4-8-4", form_of_images({2, 2, 1}, 4), kBatch / 2, *backend_));
  options_.microbatches = 2;
  strategy_.takes_time = std::chrono::milliseconds(1);
  ASSERT_TRUE(run(strategy_, &costly).ok());
  EXPECT_THAT(waited, ElementsAre(5, 5, 5, 5, 2, 2, 2, 2));
}

TEST_F(TrainerTest, GivesTheNextStepBeforeItWaitsForOneOfADevice) {
  options_.total_steps = 3;
  options_.steps_per_epoch = 100;
  strategy_.is_ahead = true;
  std::vector<std::size_t> recorded;  // steps, by the step that is done
  hooks_.step_done = [&](std::int64_t steps_done, const std::function<Status()>& settle) -> Status {
    recorded.push_back(records_.all.size());
    if (steps_done == 2) SYNCOPATE_RETURN_IF_ERROR(settle());
    recorded.push_back(records_.all.size());
    return {};
  };
  ASSERT_TRUE(run(strategy_).ok());
  Calls order;
  for (const std::string& call : calls_) {
    if (call.starts_with("begin_step") || call.starts_with("finish_step")) order.push_back(call.substr(0, 12));
  }
  EXPECT_EQ(order,
            (Calls{"begin_step 0", "begin_step 1", "finish_step ", "finish_step ", "begin_step 2", "finish_step "}));
  EXPECT_EQ(recorded, (std::vector<std::size_t>{0, 0, 1, 2, 2, 2}));
  EXPECT_EQ(records_.all.size(), 3u);
}

TEST_F(TrainerTest, LaunchesStepsAsGraphsOnceTheyWereCaptured) {
  testing_support::ShadowDevice device;
  options_.total_steps = 7;
  options_.steps_per_epoch = 100;
  strategy_.is_ahead = true;
  hooks_.plants_nan = [&] { return strategy_.learning_rates.size() == 5; };  // in step 4
  TrainerParts parts = this->parts();
  parts.device = &device;
  ASSERT_TRUE(train(options_, hooks_, parts, nullptr).ok());
  Calls given;  // steps whose work the host has given call by call
  std::string step;
  for (const std::string& call : calls_) {
    if (call.starts_with("begin_step")) step = call.substr(11, 1);
    if (call.starts_with("gradients_complete")) given.push_back(step);
  }
  EXPECT_EQ(given, (Calls{"0", "1", "2", "4"}))
      << "the first, one of each turn to capture, and one that is unlike others";
  EXPECT_EQ(std::ranges::count_if(calls_, [](const auto& call) { return call.starts_with("step_given"); }), 7);
  EXPECT_EQ(records_.all.size(), 7u);
}

TEST_F(TrainerTest, SettlesAllStepsBeforeAnEpochAndAnEvaluation) {
  options_.total_steps = 6;
  options_.steps_per_epoch = 3;
  strategy_.is_ahead = true;
  std::vector<std::size_t> at_epochs, at_points;
  hooks_.next_epoch = [&](std::int64_t) -> Result<bool> {
    at_epochs.push_back(records_.all.size());
    return true;
  };
  hooks_.evaluation_due = [](std::int64_t steps_done) { return EvaluationShare{.weights = steps_done == 2}; };
  hooks_.snapshot = [&](std::int64_t, std::span<const float>) -> Status {
    at_points.push_back(records_.all.size());
    return {};
  };
  ASSERT_TRUE(run(strategy_).ok());
  EXPECT_EQ(at_epochs, (std::vector<std::size_t>{0, 3}));
  EXPECT_EQ(at_points, (std::vector<std::size_t>{2}));
  EXPECT_EQ(records_.all.size(), 6u);
}

TEST_F(TrainerTest, EndsWhereAStepThatWasGivenFails) {
  options_.total_steps = 100;
  strategy_.is_ahead = true;
  strategy_.fails_in = "finish_step";
  EXPECT_EQ(run(strategy_).message(), "rank 1 is gone");
  EXPECT_EQ(activity_.step(), 0) << "the step that has failed, and not the one that was given since";
}

TEST_F(TrainerTest, OnlyTheChiefInitialises) {
  ASSERT_TRUE(run(strategy_).ok());
  EXPECT_TRUE(strategy_.found_initial_weights);
  options_.chief = false;
  ASSERT_TRUE(run(strategy_).ok());
  EXPECT_FALSE(strategy_.found_initial_weights);
}

TEST_F(TrainerTest, RecordsEveryStepWhole) {
  options_.total_steps = 3, options_.steps_per_epoch = 2;
  const TimePoint start = clock_.now();
  ASSERT_TRUE(run(strategy_).ok());
  ASSERT_THAT(records_.all, SizeIs(3));
  for (std::int64_t i = 0; i < 3; ++i) {
    const StepRecord& record = records_.all[static_cast<std::size_t>(i)];
    EXPECT_EQ(record.step, i);
    EXPECT_EQ(record.epoch, i / 2);
    EXPECT_EQ(record.end, start + (i + 1) * std::chrono::milliseconds(10));
    EXPECT_EQ(record.total, std::chrono::milliseconds(10));
    EXPECT_EQ(record.data, std::chrono::milliseconds(3));
    EXPECT_EQ(record.forward, Duration{});
    EXPECT_EQ(record.backward, Duration{});
    EXPECT_EQ(record.sync.bytes_out, 99);
    EXPECT_EQ(record.samples, kBatch);
    EXPECT_GT(record.loss, 0);
  }
}

// Its thread stands for 1 ms more without a core each time that it is asked.
TEST_F(TrainerTest, RecordsForHowLongItHadNoCoreInAStepAndUpToTheEndOfBackward) {
  options_.total_steps = 2;
  Duration without_core{};
  TrainerParts parts{*backend_, *model_, batches_, strategy_, records_, clock_, activity_};
  parts.core_wait = [&] { return without_core += std::chrono::milliseconds(1); };
  ASSERT_TRUE(train(options_, hooks_, parts, nullptr).ok());
  ASSERT_THAT(records_.all, SizeIs(2));
  for (const StepRecord& record : records_.all) {
    EXPECT_EQ(record.core_wait, std::chrono::milliseconds(2));
    EXPECT_EQ(record.compute_core_wait, std::chrono::milliseconds(1));
  }
}

// It waited for weights within the passes, and woke late.
TEST_F(TrainerTest, CountsNoComputingWithoutACoreInWaitsWithinThePasses) {
  options_.total_steps = 1;
  Duration without_core{};
  TrainerParts parts{*backend_, *model_, batches_, strategy_, records_, clock_, activity_};
  parts.core_wait = [&] { return without_core += std::chrono::milliseconds(1); };
  for (const auto& [in_waits, in_passes] : {std::pair(400, 600), {1500, 0}}) {
    strategy_.pass_core_wait = std::chrono::microseconds(in_waits);
    records_.all.clear();
    ASSERT_TRUE(train(options_, hooks_, parts, nullptr).ok());
    ASSERT_THAT(records_.all, SizeIs(1));
    EXPECT_EQ(records_.all.front().compute_core_wait, std::chrono::microseconds(in_passes));
    EXPECT_EQ(records_.all.front().core_wait, std::chrono::milliseconds(2));
    EXPECT_EQ(records_.all.front().sync.pass_core_wait, Duration::zero());
  }
  // What a virtual clock's thread was seen to wait for says nothing, and is in no record.
  parts.core_wait = nullptr;
  strategy_.pass_core_wait = -std::chrono::microseconds(400);
  records_.all.clear();
  ASSERT_TRUE(train(options_, hooks_, parts, nullptr).ok());
  EXPECT_EQ(records_.all.front().compute_core_wait, Duration::zero());
  EXPECT_EQ(records_.all.front().sync.pass_core_wait, Duration::zero());
}

TEST_F(TrainerTest, SaysThatItDoesNotKnowForHowLongItHadNoCore) {
  ASSERT_TRUE(run(strategy_).ok());
  EXPECT_FALSE(records_.all.front().core_wait.has_value());
}

TEST_F(TrainerTest, HandsTheScheduledRateToEachStep) {
  options_.total_steps = 4, options_.steps_per_epoch = 2, options_.minibatch_growth = 2;
  options_.schedule = *LearningRateSchedule::parse("linear,step:1:0.5");
  ASSERT_TRUE(run(strategy_).ok());
  EXPECT_THAT(strategy_.learning_rates, ElementsAre(0.2, 0.2, 0.1, 0.1));
}

TEST_F(TrainerTest, HandsOutTheWeightsAfterEachStepForWhichTheyAreDueButTheLast) {
  options_.total_steps = 5, options_.steps_per_epoch = 2;
  std::vector<std::int64_t> asked, snapshots;
  hooks_.evaluation_due = [&](std::int64_t steps_done) {
    asked.push_back(steps_done);
    return EvaluationShare{.state = false, .weights = steps_done % 3 != 0};
  };
  hooks_.snapshot = [&](std::int64_t steps_done, std::span<const float> weights) {
    snapshots.push_back(steps_done);
    EXPECT_EQ(weights.size(), model_->layout().size());
    return Status();
  };
  ASSERT_TRUE(run(strategy_).ok());
  EXPECT_THAT(asked, ElementsAre(1, 2, 3, 4)) << "of the last step come the final weights";
  EXPECT_THAT(snapshots, ElementsAre(1, 2, 4));
}

TEST_F(TrainerTest, HandsOutWhatReplicasAgreeOnRatherThanItsOwnWeights) {
  strategy_.agreed = {1, 2, 3};
  options_.total_steps = 2;
  hooks_.evaluation_due = [](std::int64_t) { return EvaluationShare{.state = false, .weights = true}; };
  std::vector<float> handed_out;
  hooks_.snapshot = [&](std::int64_t, std::span<const float> weights) {
    handed_out.assign(weights.begin(), weights.end());
    return Status();
  };
  ASSERT_TRUE(run(strategy_).ok());
  EXPECT_EQ(handed_out, strategy_.agreed);
}

TEST_F(TrainerTest, HandsOverTheLocalStateOfAModelThatHasAnyBeforeTheWeightsAndAtTheEnd) {
  options_.total_steps = 3, options_.steps_per_epoch = 2;
  Calls calls;
  Tensor last;
  hooks_.evaluation_due = [&](std::int64_t steps_done) {
    return EvaluationShare{.state = true, .weights = steps_done == 2};
  };
  hooks_.local_state = [&](bool final, std::span<const float> state) {
    calls.push_back(final ? "final state" : "state");
    last.assign(state.begin(), state.end());
  };
  hooks_.snapshot = [&](std::int64_t steps_done, std::span<const float> /*weights*/) {
    calls.push_back("snapshot " + std::to_string(steps_done));
    return Status();
  };
  ASSERT_TRUE(run(strategy_).ok());
  EXPECT_THAT(std::exchange(calls, {}), ElementsAre("snapshot 2"));  // an mlp has none

  const auto resnet = std::move(*make_model("resnet20", form_of_images({8, 8, 1}, 4), kBatch, *backend_));
  OneBatch batches(random_tensor(kBatch * 64, random_), labels_, clock_);
  ASSERT_TRUE(
      train(options_, hooks_, {*backend_, *resnet, batches, strategy_, records_, clock_, activity_}, nullptr).ok());
  EXPECT_THAT(calls, ElementsAre("state", "state", "snapshot 2", "final state"));
  EXPECT_THAT(last, testing::ElementsAreArray(resnet->local_state()));
}

// The work of one worker of a job that others train, too: it draws positions of its own.
class Positions final : public Work {
 public:
  explicit Positions(std::vector<std::int64_t> positions) : positions_(std::move(positions)) {}
  Status begin(std::int64_t) override { return {}; }
  Result<std::optional<std::int64_t>> next(std::int64_t step) override {
    const auto at = static_cast<std::size_t>(step);
    return at < positions_.size() ? std::optional(positions_[at]) : std::nullopt;
  }

 private:
  std::vector<std::int64_t> positions_;
};

TEST_F(TrainerTest, GoesByItsPositionInTheJobWhereWorkersShareIt) {
  // 2 workers, 5 epochs of 4 global batches, which are 8 batches each. This one passes over epochs 1 and 3; in the end
  // it trains one that somebody else had drawn long before.
  Positions work({0, 7, 16, 23, 33, 5});
  options_.workers = 2, options_.steps_per_epoch = 4, options_.total_steps = 20;
  options_.schedule = *LearningRateSchedule::parse("step:1:0.5");
  std::vector<std::int64_t> asked, steps_done;
  hooks_.next_epoch = [&](std::int64_t epoch) -> Result<bool> {
    asked.push_back(epoch);
    return true;
  };
  hooks_.evaluation_due = [&](std::int64_t done) {
    steps_done.push_back(done);
    return EvaluationShare{};
  };
  TrainerParts parts = this->parts();
  parts.work = &work;
  ASSERT_TRUE(train(options_, hooks_, parts, nullptr).ok());
  EXPECT_THAT(asked, ElementsAre(0, 2, 4));
  EXPECT_THAT(steps_done, ElementsAre(1, 4, 9, 12, 17, 17)) << "of the job, which does not go back";
  EXPECT_THAT(strategy_.learning_rates, ElementsAre(0.1, 0.1, 0.025, 0.025, 0.00625, 0.1));
  std::vector<std::int64_t> positions, epochs;
  for (const StepRecord& record : records_.all) {
    positions.push_back(record.position);
    epochs.push_back(record.epoch);
  }
  EXPECT_THAT(positions, ElementsAre(0, 7, 16, 23, 33, 5));
  EXPECT_THAT(epochs, ElementsAre(0, 0, 2, 2, 4, 0));
}

TEST_F(TrainerTest, EndsInOrderBeforeTheEpochThatIsNotWanted) {
  options_.total_steps = 100, options_.steps_per_epoch = 3;
  std::vector<std::int64_t> asked;
  hooks_.next_epoch = [&](std::int64_t epoch) -> Result<bool> {
    asked.push_back(epoch);
    return epoch < 2;
  };
  ASSERT_TRUE(run(strategy_).ok());
  EXPECT_THAT(asked, ElementsAre(0, 1, 2));
  EXPECT_THAT(records_.all, SizeIs(6));
  EXPECT_EQ(calls_.back(), "final_weights");
}

TEST_F(TrainerTest, OfAStragglerHandsOverNoGradientBeforeItIsDue) {
  Straggling straggling({.stragglers = *Stragglers::parse("0:+40")}, clock_, [this](Duration duration) {
    calls_.push_back("wait [" + std::string(activity_.operation()) + "]");
    clock_.advance(duration);
    return true;
  });
  ASSERT_TRUE(run(strategy_, &straggling).ok());
  EXPECT_EQ(calls_, (Calls{"allocate [joining]", "join [joining]", "begin_step 0 [forward]", "wait [straggling]",
                           "gradient_ready 0 [backward]", "gradient_ready 1 [backward]", "gradient_ready 2 [backward]",
                           "gradient_ready 3 [backward]", "gradients_complete [backward]", "step_given [backward]",
                           "finish_step [synchronising]", "leave [leaving]", "final_weights"}));
  const StepRecord& record = records_.all.front();
  EXPECT_EQ(record.straggle, std::chrono::milliseconds(40));
  EXPECT_EQ(record.total, std::chrono::milliseconds(50));
  EXPECT_EQ(record.forward, Duration{}) << "the delay is in no other part";
  EXPECT_EQ(record.backward, Duration{});
}

// Its thread wakes from the delay 3 ms after it was due, for want of a core.
TEST_F(TrainerTest, OfAStragglerCountsWhatItHadNoCoreInItsDelayAsNoComputing) {
  Duration without_core{};
  Straggling straggling({.stragglers = *Stragglers::parse("0:+40")}, clock_, [&](Duration duration) {
    clock_.advance(duration + std::chrono::milliseconds(3));
    without_core += std::chrono::milliseconds(3);
    return true;
  });
  TrainerParts parts{*backend_, *model_, batches_, strategy_, records_, clock_, activity_, &straggling};
  parts.core_wait = [&] { return without_core; };
  ASSERT_TRUE(train(options_, hooks_, parts, nullptr).ok());
  const StepRecord& record = records_.all.front();
  EXPECT_EQ(record.straggle, std::chrono::milliseconds(43));
  EXPECT_EQ(record.compute_core_wait, Duration{});
  EXPECT_EQ(record.core_wait, Duration{}) << "it is in the delay already";
}

TEST_F(TrainerTest, EndsAStragglerThatIsToldToStop) {
  options_.total_steps = 100;
  int waits = 0;
  Straggling straggling({.stragglers = *Stragglers::parse("0:+40")}, clock_, [&](Duration duration) {
    clock_.advance(duration);
    return ++waits < 3;
  });
  EXPECT_EQ(run(strategy_, &straggling).code(), Code::kCancelled);
  EXPECT_THAT(records_.all, SizeIs(2)) << "the third step is not whole";
}

TEST_F(TrainerTest, PassesOnTheFailureOfEveryPhaseAndDoesNoMore) {
  for (const char* phase : {"join", "finish_step", "leave"}) {
    calls_.clear();
    strategy_.fails_in = phase;
    EXPECT_THAT(run(strategy_).message(), testing::StartsWith("rank 1"));
    EXPECT_THAT(calls_.back(), testing::StartsWith(phase));
  }
  strategy_.fails_in = "weights_needed";
  strategy_.needed.clear();
  EXPECT_EQ(run(strategy_).code(), Code::kDeadlineExceeded);
  EXPECT_THAT(strategy_.needed, SizeIs(1));
  calls_.clear();
  hooks_.next_epoch = [](std::int64_t) -> Result<bool> { return Status::cancelled("told to stop"); };
  EXPECT_EQ(run(strategy_).code(), Code::kCancelled);
  EXPECT_EQ(calls_.back(), "join [joining]");
}

TEST_F(TrainerTest, LearnsASeparableSetAlone) {
  options_.total_steps = 60;
  for (OptimizerKind kind : {OptimizerKind::kSgd, OptimizerKind::kMomentum, OptimizerKind::kAdam}) {
    records_.all.clear();
    LocalStrategy local({.kind = kind}, clock_);
    ASSERT_TRUE(run(local).ok());
    EXPECT_LT(records_.all.back().loss, 0.2 * records_.all.front().loss);
  }
}

TEST_F(TrainerTest, LearnsTheSameInARunThatIsRepeated) {
  options_.total_steps = 20;
  double losses[2];
  for (double& loss : losses) {
    LocalStrategy local({.kind = OptimizerKind::kAdam}, clock_);
    ASSERT_TRUE(run(local).ok());
    loss = records_.all.back().loss;
  }
  EXPECT_EQ(losses[0], losses[1]);
}

}  // namespace
}  // namespace syncopate::worker
