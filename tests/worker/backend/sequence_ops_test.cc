// The fast backend's operations on sequences against the plain loops, over sizes that fill vector registers and sizes
// that do not.
#include "worker/backend/sequence_ops.h"

#include <gtest/gtest.h>

#include "tests/worker/tensor_helpers.h"
#include "worker/backend/vector_math.h"

namespace syncopate::worker {
namespace {

constexpr double kSequenceTolerance = 2e-6;  // of the largest element

class SequenceOps : public testing::Test {
 protected:
  void expect_layer_norm_agrees(const LayerNormShape& s, bool is_past) {
    const Tensor past = random_tensor(is_past ? s.rows * s.width : 0, random_);
    const Tensor x = random_tensor(s.rows * s.width, random_), gamma = random_tensor(s.width, random_);
    const Tensor beta = random_tensor(s.width, random_), dy = random_tensor(s.rows * s.width, random_);
    Tensor y[2], moments[2], dgamma[2], dbeta[2], dx[2], unused;
    for (int i : {0, 1}) {
      y[i] = dx[i] = poisoned(s.rows * s.width), moments[i] = poisoned(2 * s.rows);
      dgamma[i] = dbeta[i] = unused = poisoned(s.width);
      backends_[i]->layer_norm_forward(s, x, gamma, beta, y[i], moments[i]);
      backends_[i]->layer_norm_backward(s, x, gamma, moments[i], dy, past, dgamma[i], dbeta[i], dx[i]);
      backends_[i]->layer_norm_backward(s, x, gamma, moments[i], dy, {}, unused, dbeta[i], {});
      EXPECT_EQ(unused, dgamma[i]);
    }
    expect_close(y[1], y[0], kSequenceTolerance, "y");
    expect_close(dgamma[1], dgamma[0], kSequenceTolerance, "dgamma");
    expect_close(dbeta[1], dbeta[0], kSequenceTolerance, "dbeta");
    expect_close(dx[1], dx[0], kSequenceTolerance, "dx");
  }

  // Large scores are rounded by more than small ones.
  void expect_attention_agrees(const AttentionShape& s, float magnitude) {
    const double tolerance = kSequenceTolerance * magnitude;
    const int values = s.rows() * s.width, pairs = static_cast<int>(s.probabilities());
    Tensor qkv = random_tensor(3 * values, random_);
    for (float& value : qkv) value *= magnitude;
    const Tensor dy = random_tensor(values, random_);
    Tensor y[2], p[2], dqkv[2];
    for (int i : {0, 1}) {
      y[i] = poisoned(values), p[i] = poisoned(pairs), dqkv[i] = poisoned(3 * values);
      backends_[i]->attention_forward(s, qkv, y[i], p[i]);
    }
    expect_close(y[1], y[0], tolerance, "y");
    expect_close(p[1], p[0], tolerance, "probabilities");
    for (int i : {0, 1}) backends_[i]->attention_backward(s, qkv, y[i], dy, p[i], dqkv[i]);
    expect_close(dqkv[1], dqkv[0], 2 * tolerance, "dqkv");
  }

  Random random_{7};
  std::unique_ptr<ComputeBackend> backends_[2] = {make_reference_backend(), make_onednn_backend()};
};

TEST_F(SequenceOps, EmbeddingAgreesToTheBitAndAddsToTheTokensGradient) {
  for (const EmbeddingShape& s : {EmbeddingShape{1, 1, 1, 1}, {3, 5, 7, 4}, {4, 16, 32, 11}}) {
    const std::vector<int> ids = random_labels(s.rows(), s.vocabulary, random_);
    const Tensor tokens = random_tensor(s.vocabulary * s.width, random_);
    const Tensor positions = random_tensor(s.context * s.width, random_),
                 dy = random_tensor(s.rows() * s.width, random_);
    const Tensor before = random_tensor(s.vocabulary * s.width, random_);
    Tensor y[2], dtokens[2] = {before, before}, dpositions[2];
    for (int i : {0, 1}) {
      y[i] = poisoned(s.rows() * s.width), dpositions[i] = poisoned(s.context * s.width);
      backends_[i]->embedding_forward(s, ids, tokens, positions, y[i]);
      backends_[i]->embedding_backward(s, ids, dy, dtokens[i], dpositions[i]);
    }
    EXPECT_EQ(y[1], y[0]);
    EXPECT_EQ(dtokens[1], dtokens[0]);
    EXPECT_NE(dtokens[1], before);
    EXPECT_EQ(dpositions[1], dpositions[0]);
  }
}

TEST_F(SequenceOps, LayerNormAgreesWithPlainLoops) {
  for (const LayerNormShape& s : {LayerNormShape{1, 1}, {3, 7}, {5, 16}, {4, 33}, {17, 128}, {2, 1000}}) {
    SCOPED_TRACE(testing::Message() << s.rows << " x " << s.width);
    expect_layer_norm_agrees(s, false);
    // A row of one value has no gradient but what rounding leaves, times 1 / sqrt(epsilon).
    if (s.width > 1) expect_layer_norm_agrees(s, true);
  }
}

TEST_F(SequenceOps, LayerNormOfAConstantRowIsItsShift) {
  for (const auto& backend : backends_) {
    const Tensor x(20, 3.0f), gamma = random_tensor(20, random_), beta = random_tensor(20, random_);
    Tensor y = poisoned(20), moments = poisoned(2);
    backend->layer_norm_forward({1, 20}, x, gamma, beta, y, moments);
    expect_close(y, beta, 1e-5, backend->name());
  }
}

TEST_F(SequenceOps, GeluAgreesWithPlainLoopsAlsoFarFromZero) {
  for (const float magnitude : {0.01f, 1.0f, 5.0f, 30.0f, 1e4f}) {
    for (const int count : {1, 15, 16, 17, 1000}) {
      Tensor x = random_tensor(count, random_);
      for (float& value : x) value *= magnitude;
      const Tensor dy = random_tensor(count, random_);
      Tensor y[2], dx[2];
      for (int i : {0, 1}) {
        y[i] = dx[i] = poisoned(count);
        backends_[i]->gelu_forward(x, y[i]);
        backends_[i]->gelu_backward(x, dy, dx[i]);
      }
      expect_close(y[1], y[0], kSequenceTolerance, "y");
      expect_close(dx[1], dx[0], kSequenceTolerance, "dx");
    }
  }
}

TEST_F(SequenceOps, AttentionAgreesWithPlainLoops) {
  for (const AttentionShape& s :
       {AttentionShape{1, 1, 1, 1}, {2, 3, 1, 5}, {3, 7, 2, 8}, {2, 16, 4, 64}, {1, 33, 3, 51}, {2, 64, 4, 32}}) {
    for (const float magnitude : {1.0f, 20.0f}) {  // soft, and nearly a choice of one
      SCOPED_TRACE(testing::Message() << s.batch << " x " << s.context << ", " << s.heads << " heads, width " << s.width
                                      << ", magnitude " << magnitude);
      expect_attention_agrees(s, magnitude);
    }
  }
}

TEST_F(SequenceOps, AttentionSeesNothingThatComesLater) {
  const AttentionShape s{1, 9, 2, 8};
  const Tensor qkv = random_tensor(9 * 24, random_);
  for (const auto& backend : backends_) {
    Tensor changed = qkv, y = poisoned(9 * 8), after = y, p = poisoned(2 * 81);
    backend->attention_forward(s, qkv, y, p);
    for (std::size_t i = 5 * 24; i < changed.size(); ++i) changed[i] += 1.0f;  // from position 5 on
    backend->attention_forward(s, changed, after, p);
    EXPECT_TRUE(std::equal(y.begin(), y.begin() + 5 * 8, after.begin())) << backend->name();
    EXPECT_FALSE(std::equal(y.begin() + 5 * 8, y.end(), after.begin() + 5 * 8)) << backend->name();
  }
}

TEST_F(SequenceOps, DenseWithoutABiasAgreesWithPlainLoops) {
  const DenseShape s{.batch = 5, .in = 17, .out = 10, .bias = false};
  const Tensor x = random_tensor(85, random_), w = random_tensor(170, random_), dy = random_tensor(50, random_);
  Tensor y[2], dw[2], dx[2];
  for (int i : {0, 1}) {
    y[i] = poisoned(50), dw[i] = poisoned(170), dx[i] = poisoned(85);
    backends_[i]->dense_forward(s, x, w, {}, y[i]);
    backends_[i]->dense_backward(s, x, w, dy, dw[i], {}, dx[i]);
  }
  expect_close(y[1], y[0], kSequenceTolerance, "y");
  expect_close(dw[1], dw[0], kSequenceTolerance, "dw");
  expect_close(dx[1], dx[0], kSequenceTolerance, "dx");
}

TEST(FastExp, IsWithinTwoUnitsOfTheLastPlaceAndKeepsWhatIsNoNumber) {
  for (float x = -87; x <= 88; x += 0.00317f) {
    const double expected = std::exp(static_cast<double>(x));
    ASSERT_NEAR(fast_exp(x) / expected, 1, 2 * 1.2e-7) << x;
  }
  EXPECT_EQ(fast_exp(0), 1);
  EXPECT_NEAR(fast_exp(-1e30f), 0, 1e-37);
  EXPECT_TRUE(std::isfinite(fast_exp(1e30f)));
  EXPECT_TRUE(std::isnan(fast_exp(std::nanf(""))));
}

}  // namespace
}  // namespace syncopate::worker
