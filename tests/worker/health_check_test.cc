// What a trainer does where something in a step is not a finite number.
#include "worker/health_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "common/left_out_step.h"
#include "tests/worker/tensor_helpers.h"
#include "worker/data/image_dataset.h"
#include "worker/local_strategy.h"
#include "worker/trainer.h"

namespace syncopate::worker {
namespace {

using Quantity = NotFinite::Quantity;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int kBatchSize = 8;

// The same batch in each step, but for what a test changes.
class ChangedBatch final : public BatchSource {
 public:
  ChangedBatch(Tensor images, std::vector<int> labels) : images_(std::move(images)), labels_(std::move(labels)) {}
  BatchView next() override {
    shown_ = images_;
    if (step_++ == spoilt_step) shown_[5] = kNan;
    return {shown_, labels_};
  }
  void seek(std::int64_t step) override { step_ = step; }

  std::int64_t spoilt_step = -1;

 private:
  Tensor images_, shown_;
  std::vector<int> labels_;
  std::int64_t step_ = 0;
};

// Local training, of which a test sees each step and may change its weights.
class WatchedStrategy final : public SyncStrategy {
 public:
  explicit WatchedStrategy(const Clock& clock, bool leaves_out)
      : inner_({.kind = OptimizerKind::kSgd}, clock, 1, nullptr, leaves_out) {}

  Result<ParamArenas> allocate(const ParamLayout& layout) override {
    Result<ParamArenas> allocated = inner_.allocate(layout);
    if (allocated.ok()) arenas = *allocated;
    return allocated;
  }
  Result<std::vector<Range>> join() override { return inner_.join(); }
  void begin_step(const StepContext& step) override {
    if (step.step == spoilt_step) arenas.weights[3] = kInfinity;
    inner_.begin_step(step);
  }
  void gradient_ready(std::size_t bucket) override {
    ++handed_over;
    inner_.gradient_ready(bucket);
  }
  Result<SyncStats> finish_step() override {
    const Result<SyncStats> stats = inner_.finish_step();
    after.emplace_back(arenas.weights.begin(), arenas.weights.end());
    return stats;
  }
  Status leave() override { return inner_.leave(); }

  ParamArenas arenas;
  std::int64_t spoilt_step = -1;
  int handed_over = 0;
  std::vector<std::vector<float>> after;  // weights, step by step

 private:
  LocalStrategy inner_;
};

class NoRecords final : public RecordSink {
 public:
  void add(const StepRecord&) override {}
};

class HealthTest : public testing::Test {
 protected:
  Status run(OnNan on_nan, double rate = 0.1) {
    options_.health = HealthOptions{.on_nan = on_nan};
    options_.base_learning_rate = rate;
    strategy_.emplace(clock_, on_nan == OnNan::kSkip);
    strategy_->spoilt_step = spoilt_weights_;
    hooks_.plants_nan = [this, step = std::int64_t{0}]() mutable { return step++ == planted_; };
    hooks_.not_finite = [&](const NotFinite& what) {
      found_.push_back(what);
      return ends_run(on_nan, what.quantity) ? Status::cancelled("told to stop") : Status();
    };
    return train(options_, hooks_, {*backend_, *model_, batches_, *strategy_, records_, clock_, activity_}, nullptr);
  }

  Random random_{2};
  ManualClock clock_;
  Activity activity_;
  NoRecords records_;
  std::unique_ptr<ComputeBackend> backend_ = make_reference_backend();
  std::unique_ptr<Model> model_ =
      std::move(*make_model("mlp:4-8-4", form_of_images({2, 2, 1}, 4), kBatchSize, *backend_));
  std::vector<int> labels_ = random_labels(kBatchSize, 4, random_);
  ChangedBatch batches_{random_tensor(4 * kBatchSize, random_), labels_};
  std::optional<WatchedStrategy> strategy_;
  std::int64_t planted_ = -1, spoilt_weights_ = -1;
  std::vector<NotFinite> found_;
  TrainerOptions options_{.chief = true, .total_steps = 6, .schedule = {}, .base_learning_rate = 0.1};
  TrainerHooks hooks_;
};

TEST_F(HealthTest, FindsNothingInAHealthyRun) {
  ASSERT_TRUE(run(OnNan::kStop).ok());
  EXPECT_THAT(found_, IsEmpty());
  EXPECT_EQ(strategy_->handed_over, 6);
}

TEST_F(HealthTest, NamesStepAndTensorOfAGradientAndHandsItToNobody) {
  planted_ = 2;
  EXPECT_EQ(run(OnNan::kStop).code(), Code::kCancelled);
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].step, 2);
  EXPECT_EQ(found_[0].quantity, Quantity::kGradient);
  EXPECT_EQ(found_[0].tensor, model_->layout().tensors().front().name);
  EXPECT_THAT(to_text(found_[0]), testing::StartsWith("the gradient of dense1.weight is nan (loss "));
  EXPECT_EQ(strategy_->handed_over, 2);
  EXPECT_TRUE(all_finite(strategy_->arenas.weights));
}

TEST_F(HealthTest, TellsABatchFromWhatItMakes) {
  batches_.spoilt_step = 1;
  EXPECT_EQ(run(OnNan::kStop).code(), Code::kCancelled);
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].step, 1);
  EXPECT_EQ(found_[0].quantity, Quantity::kBatch);
}

TEST_F(HealthTest, TellsWeightsFromWhatTheyMake) {
  spoilt_weights_ = 3;
  EXPECT_EQ(run(OnNan::kSkip).code(), Code::kCancelled) << "no step that is left out mends them";
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].step, 3);
  EXPECT_EQ(found_[0].quantity, Quantity::kWeights);
  EXPECT_EQ(to_text(found_[0]).substr(0, 38), "the weights of dense1.weight hold inf ");
}

TEST_F(HealthTest, TellsARateFromWhatItMakes) {
  EXPECT_EQ(run(OnNan::kStop, kInfinity).code(), Code::kCancelled);
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].quantity, Quantity::kRate);
  EXPECT_EQ(strategy_->handed_over, 0);
}

TEST_F(HealthTest, FindsARunThatDivergesBeforeItsWeightsAreNoNumbers) {
  options_.total_steps = 10000;
  EXPECT_EQ(run(OnNan::kStop, 1e9).code(), Code::kCancelled);
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_GT(found_[0].step, 0);
}

TEST_F(HealthTest, LeavesAStepOutAsIfItHadNotBeen) {
  planted_ = 2;
  ASSERT_TRUE(run(OnNan::kSkip).ok());
  EXPECT_EQ(found_.size(), 1u);
  EXPECT_EQ(strategy_->after[2], strategy_->after[1]);
  EXPECT_NE(strategy_->after[3], strategy_->after[2]);
  EXPECT_TRUE(all_finite(strategy_->after[5]));
}

TEST_F(HealthTest, GoesOnWhereThatIsAskedFor) {
  planted_ = 2;
  ASSERT_TRUE(run(OnNan::kGoOn).ok());
  EXPECT_EQ(strategy_->handed_over, 6);
  EXPECT_GE(found_.size(), 1u);
  EXPECT_FALSE(all_finite(strategy_->arenas.weights));
}

TEST_F(HealthTest, LooksAtNothingWhereNothingIsComputed) {
  planted_ = 2;
  options_.health.reset();
  strategy_.emplace(clock_, false);
  hooks_.not_finite = [](const NotFinite&) { return Status::internal("was called"); };
  EXPECT_TRUE(
      train(options_, hooks_, {*backend_, *model_, batches_, *strategy_, records_, clock_, activity_}, nullptr).ok());
}

}  // namespace
}  // namespace syncopate::worker
