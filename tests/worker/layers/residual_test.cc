#include "worker/layers/residual.h"

#include <gmock/gmock.h>

#include "tests/worker/layers/layer_under_test.h"
#include "worker/layers/activation.h"
#include "worker/layers/batch_norm.h"
#include "worker/layers/chain.h"
#include "worker/layers/dense.h"
#include "worker/layers/flatten.h"

namespace syncopate::worker {
namespace {

using testing::ElementsAre;

class ResidualTest : public LayerTest {
 protected:
  std::unique_ptr<Layer> dense(int in, int out, const std::string& name, bool relu = false) {
    return std::make_unique<Dense>(*backend_, DenseShape{kBatch, in, out, relu}, name, Initialization::kHeUniform,
                                   layout_);
  }
  // in -> hidden -> out
  std::unique_ptr<Layer> two_dense(int in, int hidden, int out, const std::string& name) {
    Layers layers;
    layers.push_back(dense(in, hidden, name + "1"));
    layers.push_back(dense(hidden, out, name + "2"));
    return std::make_unique<Chain>(*backend_, std::move(layers), kBatch, scratch_);
  }
  std::unique_ptr<Layer> residual(std::unique_ptr<Layer> inner, std::unique_ptr<Layer> shortcut, int inputs) {
    return std::make_unique<Residual>(*backend_, std::move(inner), std::move(shortcut), inputs, kBatch);
  }

  GradientScratch scratch_{*backend_};
};

TEST_F(ResidualTest, AddsItsInputToWhatItHolds) {
  const auto layer = residual(dense(3, 3, "inner"), nullptr, 3);
  Tensor weights(layout_.size());  // zeros: f(x) is its bias
  weights[layout_.tensors()[1].range.begin + 1] = 0.5f;
  const Tensor input{1, 2, 3, 4, 5, 6, 7, 8, 9};
  Tensor output = poisoned(9);
  layer->forward(weights, {input, output});
  EXPECT_THAT(output, ElementsAre(1, 2.5, 3, 4, 5.5, 6, 7, 8.5, 9));
}

TEST_F(ResidualTest, GradientsOfAnIdentityShortcutAreSlopesReportedFromTheLastToTheFirst) {
  const auto layer = residual(two_dense(6, 4, 6, "inner"), nullptr, 6);
  LayerUnderTest test(*layer, random_arena(layout_), random_tensor(kBatch * 6, random_), random_);
  test.expect_gradients_are_slopes(0.02);
  EXPECT_THAT(test.reported(), ElementsAre(3, 2, 1, 0));
}

TEST_F(ResidualTest, GradientsOfAShortcutChainAreSlopesReportedFromTheLastToTheFirst) {
  auto inner = two_dense(6, 4, 5, "inner");
  auto shortcut = two_dense(6, 7, 5, "shortcut");
  const auto layer = residual(std::move(inner), std::move(shortcut), 6);
  LayerUnderTest test(*layer, random_arena(layout_), random_tensor(kBatch * 6, random_), random_);
  test.expect_gradients_are_slopes(0.02);
  EXPECT_THAT(test.reported(), ElementsAre(7, 6, 5, 4, 3, 2, 1, 0));
  EXPECT_EQ(layer->params(), (Range{0, layout_.tensors().back().range.end}));
}

// Behind a batch norm the sum and its relu are made in the norm's own pass, behind a dense layer in passes of their
// own.
TEST_F(ResidualTest, GradientsOfASumUnderReluAreSlopesWhoeverMakesIt) {
  for (const bool is_normed : {false, true}) {
    for (const bool has_shortcut : {false, true}) {
      SCOPED_TRACE(testing::Message() << (is_normed ? "norm" : "dense") << (has_shortcut ? ", shortcut" : ""));
      layout_ = ParamLayout();
      ParamLayout local_layout;
      Layers layers;
      layers.push_back(dense(6, 6, "inner"));
      if (is_normed) {
        layers.push_back(std::make_unique<BatchNorm>(*backend_, BatchNormShape{kBatch * 2, 3}, 2, Pass::kTraining, "bn",
                                                     layout_, local_layout));
      }
      Tensor state(local_layout.size());
      auto inner = std::make_unique<Chain>(*backend_, std::move(layers), kBatch, scratch_);
      inner->use_local_state(state);
      auto shortcut = has_shortcut ? two_dense(6, 7, 6, "shortcut") : nullptr;
      Residual layer(*backend_, std::move(inner), std::move(shortcut), 6, kBatch, true);
      EXPECT_TRUE(layer.uses_output_in_backward());
      LayerUnderTest test(layer, random_arena(layout_), random_tensor(kBatch * 6, random_), random_);
      test.expect_gradients_are_slopes(1e-3, 5e-3);
    }
  }
}

// A relu behind the sum works in the memory of the output, and a residual stands inside another.
TEST_F(ResidualTest, StandsInChainsAndInItself) {
  GradientScratch outer(*backend_);
  Layers blocks;
  for (const char* name : {"a", "b"}) {
    auto within = residual(two_dense(6, 4, 6, name), nullptr, 6);
    Layers layers;
    layers.push_back(dense(6, 6, name + std::string("3"), true));
    layers.push_back(std::move(within));
    auto whole = std::make_unique<Chain>(*backend_, std::move(layers), kBatch, outer);
    blocks.push_back(residual(std::move(whole), nullptr, 6));
    blocks.push_back(std::make_unique<Relu>(*backend_, 6));
  }
  GradientScratch outermost(*backend_);
  Chain chain(*backend_, std::move(blocks), kBatch, outermost);
  LayerUnderTest test(chain, random_arena(layout_), random_tensor(kBatch * 6, random_), random_);
  test.expect_gradients_are_slopes(1e-3, 2e-3);
}

TEST_F(ResidualTest, ComputesNoGradientOfAnInputThatNobodyNeeds) {
  const auto layer = residual(two_dense(6, 4, 6, "inner"), two_dense(6, 7, 6, "shortcut"), 6);
  const Tensor weights = random_arena(layout_), input = random_tensor(kBatch * 6, random_);
  Tensor output = poisoned(kBatch * 6), gradient = random_tensor(kBatch * 6, random_);
  Tensor with(layout_.size()), without(layout_.size()), input_gradient = poisoned(kBatch * 6);
  const auto ignore = [](std::size_t) {};
  layer->forward(weights, {input, output});
  layer->backward(weights, {input, output}, {gradient, input_gradient}, with, ignore);
  layer->backward(weights, {input, output}, {gradient, {}}, without, ignore);
  EXPECT_EQ(without, with);
}

TEST_F(ResidualTest, AChainAsksForWeightsJustBeforeItsLayersReadThem) {
  Layers layers;
  layers.push_back(dense(4, 4, "first"));
  layers.push_back(residual(two_dense(4, 4, 4, "inner"), nullptr, 4));
  layers.push_back(std::make_unique<Flatten>(4));
  Chain chain(*backend_, std::move(layers), kBatch, scratch_);
  std::vector<Range> asked;
  chain.before_reading([&](Range range) { asked.push_back(range); });
  const Tensor weights = random_arena(layout_), input = random_tensor(kBatch * 4, random_);
  Tensor output = poisoned(kBatch * 4);
  chain.forward(weights, {input, output});
  const auto& tensors = layout_.tensors();
  const Range first{0, tensors[1].range.end}, second{tensors[2].range.begin, tensors.back().range.end};
  EXPECT_THAT(std::exchange(asked, {}), ElementsAre(first, second));
  Tensor gradient = random_tensor(kBatch * 4, random_), arena_gradients(layout_.size());
  chain.backward(weights, {input, output}, {gradient, {}}, arena_gradients, [](std::size_t) {});
  EXPECT_THAT(asked, ElementsAre(second, first));
}

}  // namespace
}  // namespace syncopate::worker
