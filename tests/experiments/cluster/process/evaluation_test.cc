#include "experiments/cluster/process/evaluation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "common/random.h"
#include "worker/data/image_dataset.h"

namespace syncopate::experiments {
namespace {

constexpr const char* kModel = "mlp:16-8-3";

// Noise, with labels that have nothing to do with it.
class NoisyImages final : public worker::ImageDataset {
 public:
  explicit NoisyImages(std::int64_t size, int side = 4) : ImageDataset({side, side, 1}, 3), size_(size) {}

  std::int64_t size() const override { return size_; }
  std::span<const std::uint8_t> image(std::int64_t index, std::span<std::uint8_t> scratch) const override {
    Random random(7, static_cast<std::uint64_t>(index));
    for (std::uint8_t& value : scratch) value = static_cast<std::uint8_t>(random.below(256));
    return scratch;
  }
  int label(std::int64_t index) const override { return static_cast<int>(index * index % 3); }

 private:
  std::int64_t size_;
};

class EvaluationTest : public testing::Test {
 protected:
  Evaluation in_batches_of(std::int64_t batch) {
    Result<Evaluation> evaluation = Evaluation::create(kModel, data_, *backend_, batch);
    EXPECT_TRUE(evaluation.ok()) << evaluation.status().message();
    return std::move(*evaluation);
  }
  std::vector<float> weights(std::uint64_t seed) {
    const auto model = worker::make_model(kModel, data_.form(), 1, *backend_);
    std::vector<float> weights((*model)->layout().size());
    (*model)->initialize(seed, weights);
    return weights;
  }

  const NoisyImages data_{22};
  std::unique_ptr<worker::ComputeBackend> backend_ = worker::make_reference_backend();
};

TEST_F(EvaluationTest, IsThatOfAllDataAsOneBatchHoweverItIsCut) {
  const std::vector<float> weights = this->weights(3);
  const auto whole = worker::make_model(kModel, data_.form(), 22, *backend_);
  std::vector<float> images(22 * 16);
  std::vector<int> labels(22);
  std::vector<std::uint8_t> image(16);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    worker::normalize(data_.image(static_cast<std::int64_t>(i), image), std::span(images).subspan(16 * i, 16));
    labels[i] = data_.label(static_cast<std::int64_t>(i));
  }
  (*whole)->forward(weights, {images, labels});
  const worker::LossAndCorrect expected = (*whole)->loss();
  ASSERT_GT(expected.correct, 0);
  ASSERT_LT(expected.correct, 22);
  for (std::int64_t batch : {1, 5, 8, 11, 21, 22, 250}) {
    const Evaluation::Score score = in_batches_of(batch).run(weights);
    EXPECT_EQ(score.accuracy, expected.correct / 22.0) << "batches of " << batch;
    EXPECT_NEAR(score.loss, expected.loss, 1e-12) << "batches of " << batch;
  }
}

TEST_F(EvaluationTest, DependsOnNothingThatWasEvaluatedBefore) {
  Evaluation evaluation = in_batches_of(5);
  const std::vector<float> a = weights(3), b = weights(4);
  const Evaluation::Score first = evaluation.run(a), other = evaluation.run(b), again = evaluation.run(a);
  EXPECT_EQ(again.loss, first.loss);
  EXPECT_EQ(again.accuracy, first.accuracy);
  EXPECT_NE(other.loss, first.loss);
  EXPECT_EQ(other.loss, in_batches_of(5).run(b).loss);
}

TEST_F(EvaluationTest, HasNoLossWhereAWeightIsNoNumber) {
  std::vector<float> weights = this->weights(3);
  weights.front() = std::nanf("");
  EXPECT_TRUE(std::isnan(in_batches_of(5).run(weights).loss));
}

TEST_F(EvaluationTest, OfAModelWithBatchNormTakesTheGivenMomentsHoweverTheDataIsCut) {
  const NoisyImages data(6, 8);
  const auto evaluate = [&](std::int64_t batch, float mean, float variance) {
    Result<Evaluation> evaluation = Evaluation::create("resnet20", data, *backend_, batch);
    EXPECT_TRUE(evaluation.ok()) << evaluation.status().message();
    std::vector<float> weights(evaluation->layout().size()), state(evaluation->local_layout().size());
    const worker::SampleForm& form = data.form();
    (*worker::make_model("resnet20", form, 1, *backend_))->initialize(3, weights);
    const ParamLayout layout = *worker::local_state_layout("resnet20", form);
    for (const TensorSpec& tensor : layout.tensors()) {
      std::ranges::fill(slice(std::span(state), tensor.range), tensor.name.ends_with("_var") ? variance : mean);
    }
    return evaluation->run(weights, state).loss;
  };
  const double loss = evaluate(6, 0.1f, 2.0f);
  EXPECT_NEAR(evaluate(4, 0.1f, 2.0f), loss, 1e-6 * loss);  // by batches of 4 and 2
  EXPECT_NEAR(evaluate(1, 0.1f, 2.0f), loss, 1e-6 * loss);
  EXPECT_GT(std::abs(evaluate(6, 0.2f, 2.0f) - loss), 1e-3);
  EXPECT_GT(std::abs(evaluate(6, 0.1f, 1.0f) - loss), 1e-3);
  EXPECT_TRUE(std::isnan(evaluate(6, std::nanf(""), 2.0f)));
}

TEST_F(EvaluationTest, ExpectsAsManyWeightsAsTheModelHas) {
  EXPECT_EQ(in_batches_of(5).layout().size(), weights(3).size());
}

TEST_F(EvaluationTest, SaysWhichModelDoesNotFitTheData) {
  const Result<Evaluation> evaluation = Evaluation::create("mlp:17-8-3", data_, *backend_, 5);
  EXPECT_EQ(evaluation.status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace syncopate::experiments
