// The gradients of a transformer's layers against central finite differences, on the plain loops.
#include "tests/worker/layers/layer_under_test.h"
#include "worker/layers/activation.h"
#include "worker/layers/attention.h"
#include "worker/layers/dense.h"
#include "worker/layers/embedding.h"
#include "worker/layers/layer_norm.h"
#include "worker/layers/tied_output.h"

namespace syncopate::worker {
namespace {

class SequenceLayers : public LayerTest {};

TEST_F(SequenceLayers, GradientsOfLayerNormAreSlopesAndReportedShiftFirst) {
  LayerNorm norm(*backend_, {kBatch * 2, 7}, 2, "norm", layout_);
  LayerUnderTest test(norm, random_arena(layout_), random_tensor(kBatch * 14, random_), random_);
  test.expect_gradients_are_slopes(3e-3, 1e-3);
  EXPECT_EQ(test.reported(), (std::vector<std::size_t>{1, 0}));
}

TEST_F(SequenceLayers, GradientsOfGeluAreSlopes) {
  Gelu gelu(*backend_, 20);
  Tensor input = random_tensor(kBatch * 20, random_);
  for (float& value : input) value *= 3;
  LayerUnderTest(gelu, {}, input, random_).expect_gradients_are_slopes(3e-3, 1e-3);
}

TEST_F(SequenceLayers, GradientsOfAttentionAreSlopes) {
  Attention attention(*backend_, {kBatch, 5, 2, 6});
  LayerUnderTest(attention, {}, random_tensor(kBatch * 5 * 18, random_), random_)
      .expect_gradients_are_slopes(3e-3, 1e-3);
}

TEST_F(SequenceLayers, GradientsOfDenseOverRowsAreSlopes) {
  const AffineParams params(layout_, "dense", {5, 7}, NormalInitialization{0.02});
  Dense dense(*backend_, {kBatch * 4, 7, 5}, params, 4);
  EXPECT_EQ(dense.output_values(), 20u);
  EXPECT_EQ(dense.flops_per_sample(), 2.0 * 7 * 5 * 4);
  LayerUnderTest(dense, random_arena(layout_), random_tensor(kBatch * 28, random_), random_)
      .expect_gradients_are_slopes(0.1);
}

TEST_F(SequenceLayers, GradientsOfTiedOutputAreSlopesAndNotReported) {
  const Range tokens = layout_.tensors()[layout_.add("tokens", {9, 6})].range;
  TiedOutput output(*backend_, {.batch = kBatch * 2, .in = 6, .out = 9, .bias = false}, tokens, 2);
  LayerUnderTest test(output, random_arena(layout_), random_tensor(kBatch * 12, random_), random_);
  test.expect_gradients_are_slopes(0.1);
  EXPECT_TRUE(test.reported().empty());
}

// Its output is linear in the tables: each row's gradient is the sum of what its places were given.
TEST_F(SequenceLayers, EmbeddingAddsToTheTokensGradientAndReportsItLast) {
  Embedding embedding(*backend_, {1, 3, 2, 4}, NormalInitialization{0.02}, layout_);
  const std::vector<int> ids{2, 0, 2};
  const Tensor weights = random_arena(layout_), dy{1, 2, 3, 4, 5, 6};
  Tensor gradient(layout_.size()), y = poisoned(6), dy_copy = dy;
  const Floats dtokens = slice(Floats(gradient), embedding.tokens());
  std::ranges::fill(dtokens, 100.0f);  // by the output layer
  std::vector<std::size_t> reported;
  embedding.forward(weights, {{}, y, ids});
  EXPECT_EQ(y[2], weights[0] + weights[layout_.tensors()[1].range.begin + 2]);
  embedding.backward(weights, {{}, y, ids}, {dy_copy, {}}, gradient, [&](std::size_t t) { reported.push_back(t); });
  EXPECT_EQ(Tensor(dtokens.begin(), dtokens.end()), (Tensor{103, 104, 100, 100, 106, 108, 100, 100}));
  const ConstFloats dpositions = slice(ConstFloats(gradient), layout_.tensors()[1].range);
  EXPECT_EQ(Tensor(dpositions.begin(), dpositions.end()), dy);
  EXPECT_EQ(reported, (std::vector<std::size_t>{1, 0}));
}

}  // namespace
}  // namespace syncopate::worker
