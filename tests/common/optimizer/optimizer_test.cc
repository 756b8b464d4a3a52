#include "common/optimizer/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "common/random.h"

namespace syncopate {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

std::vector<float> random_values(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random.normal());
  return values;
}

std::vector<float> after(const OptimizerConfig& config, std::vector<float> weights,
                         const std::vector<UpdateStep>& steps, const std::vector<float>& gradient) {
  OptimizerState state(config, weights.size());
  for (const UpdateStep& step : steps) Optimizer(config).apply(weights, gradient, state, 0, step);
  return weights;
}

const OptimizerConfig kAllRules[] = {
    {.kind = OptimizerKind::kSgd, .weight_decay = 0.01f},
    {.kind = OptimizerKind::kMomentum, .weight_decay = 0.01f},
    {.kind = OptimizerKind::kMomentum, .nesterov = true},
    {.kind = OptimizerKind::kAdam, .weight_decay = 0.01f},
    {.kind = OptimizerKind::kAdamW, .weight_decay = 0.01f},
    {.kind = OptimizerKind::kAdagrad, .weight_decay = 0.01f, .initial_accumulator = 0.1f},
    {.kind = OptimizerKind::kFtrl, .l1 = 0.01f, .l2 = 0.1f},
    {.kind = OptimizerKind::kMomentum, .dampening = 0.3f, .maximize = true},
    {.kind = OptimizerKind::kAdam, .amsgrad = true, .weight_decay = 0.01f},
    {.kind = OptimizerKind::kAdagrad, .lr_decay = 0.1f},
    {.kind = OptimizerKind::kRmsprop, .momentum = 0, .weight_decay = 0.01f},
    {.kind = OptimizerKind::kRmsprop, .weight_decay = 0.01f},
    {.kind = OptimizerKind::kRmsprop, .momentum = 0, .centered = true},
    {.kind = OptimizerKind::kRmsprop, .centered = true, .weight_decay = 0.01f},
    {.kind = OptimizerKind::kAdadelta, .weight_decay = 0.01f},
    {.kind = OptimizerKind::kAdamax, .weight_decay = 0.01f},
    {.kind = OptimizerKind::kRadam, .weight_decay = 0.01f},
};

TEST(Optimizer, SgdStepsAgainstTheScaledGradient) {
  EXPECT_THAT(after({.kind = OptimizerKind::kSgd}, {1, 2}, {{0.5f, 0.5f, 1}}, {4, -8}), ElementsAre(0, 4));
}

TEST(Optimizer, WeightDecayJoinsTheGradient) {
  EXPECT_THAT(after({.kind = OptimizerKind::kSgd, .weight_decay = 0.5f}, {2}, {{0.5f, 1, 1}}, {4}), ElementsAre(-0.5f));
}

TEST(Optimizer, MomentumGathersVelocity) {
  // velocity: 4, then 0.5 · 4 + 4 = 6.
  const OptimizerConfig config{.kind = OptimizerKind::kMomentum, .momentum = 0.5f};
  EXPECT_THAT(after(config, {10}, {{0.5f, 1, 1}, {0.5f, 1, 2}}, {4}), ElementsAre(10 - 2 - 3));
}

TEST(Optimizer, NesterovLooksOneStepAhead) {
  // first: 4 + 0.5 · 4 = 6; second: 4 + 0.5 · 6 = 7.
  const OptimizerConfig config{.kind = OptimizerKind::kMomentum, .momentum = 0.5f, .nesterov = true};
  EXPECT_THAT(after(config, {10}, {{0.5f, 1, 1}, {0.5f, 1, 2}}, {4}), ElementsAre(10 - 3 - 3.5f));
}

TEST(Optimizer, AdamsFirstStepIsTheLearningRateWhateverTheGradient) {
  const OptimizerConfig config{.kind = OptimizerKind::kAdam};
  for (float gradient : {1e-3f, -1.0f, 1e3f}) {
    const float expected = gradient > 0 ? 1.0f - 0.25f : 1.0f + 0.25f;
    EXPECT_NEAR(after(config, {1}, {{0.25f, 1, 1}}, {gradient})[0], expected, 1e-5);
  }
}

TEST(Optimizer, AdamAndAdamWFollowThePapersInDoublePrecision) {
  for (OptimizerKind kind : {OptimizerKind::kAdam, OptimizerKind::kAdamW}) {
    const OptimizerConfig config{.kind = kind, .weight_decay = 0.1f};
    std::vector<float> weights{0.5f, -2.0f, 3.0f};
    OptimizerState state({.kind = kind}, weights.size());
    std::vector<double> w(weights.begin(), weights.end()), m(3), v(3);
    for (int t = 1; t <= 50; ++t) {
      const std::vector<float> gradient = random_values(3, static_cast<std::uint64_t>(t));
      Optimizer(config).apply(weights, gradient, state, 0, {0.01f, 0.5f, t});
      for (std::size_t i = 0; i < 3; ++i) {
        const double g = 0.5 * gradient[i] + (kind == OptimizerKind::kAdam ? 0.1 * w[i] : 0);
        m[i] = 0.9 * m[i] + 0.1 * g;
        v[i] = 0.999 * v[i] + 0.001 * g * g;
        const double decay = kind == OptimizerKind::kAdamW ? 0.1 * w[i] : 0;
        w[i] -= 0.01 * (m[i] / (1 - std::pow(0.9, t)) / (std::sqrt(v[i] / (1 - std::pow(0.999, t))) + 1e-8) + decay);
      }
    }
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(weights[i], w[i], 1e-5);
  }
}

// 1-bit Adam's second stage (Tang et al. 2021, algorithm 1) in double precision.
TEST(Optimizer, AdamWithAFrozenVarianceKeepsWhatItHadAfterSoManyUpdates) {
  constexpr int kFrozenAfter = 5;
  const OptimizerConfig config{.kind = OptimizerKind::kAdam, .frozen_after = kFrozenAfter};
  std::vector<float> weights{0.5f, -2.0f, 3.0f};
  OptimizerState state(config, weights.size());
  std::vector<double> w(weights.begin(), weights.end()), m(3), v(3), frozen(3);
  for (int t = 1; t <= 40; ++t) {
    // Gradients grow a hundredfold after the freeze: a variance that went on would follow them.
    const std::vector<float> gradient = random_values(3, static_cast<std::uint64_t>(t));
    const float scale = t > kFrozenAfter ? 100.0f : 1.0f;
    Optimizer(config).apply(weights, gradient, state, 0, {0.001f, scale, t});
    for (std::size_t i = 0; i < 3; ++i) {
      const double g = static_cast<double>(scale) * gradient[i];
      m[i] = 0.9 * m[i] + 0.1 * g;
      if (t <= kFrozenAfter) {
        v[i] = 0.999 * v[i] + 0.001 * g * g;
        frozen[i] = v[i] / (1 - std::pow(0.999, t));
      }
      w[i] -= 0.001 * m[i] / (1 - std::pow(0.9, t)) / (std::sqrt(frozen[i]) + 1e-8);
    }
  }
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(weights[i], w[i], 1e-4);
}

// The second stage of 1-bit Adam (Tang et al. 2021, algorithm 1) with nothing lost on the way: two workers' own
// momenta, added up, do to the weights what their gradients would, coupled weight decay included.
TEST(Optimizer, TakesTheSumOfMomentaInPlaceOfGradientsOnceTheVarianceIsFrozen) {
  constexpr int kFrozenAfter = 5;
  for (const OptimizerKind kind : {OptimizerKind::kAdam, OptimizerKind::kAdamW}) {
    const OptimizerConfig plain{.kind = kind, .weight_decay = 0.1f, .frozen_after = kFrozenAfter};
    OptimizerConfig config = plain;
    config.takes_momentum = true;
    const std::vector<Range> undecayed{{4, 9}};
    std::vector<float> weights = random_values(20, 100), expected = weights;
    OptimizerState state({.kind = kind}, 20), expected_state({.kind = kind}, 20);
    const Optimizer optimizer(config, undecayed);
    for (int t = 1; t <= 30; ++t) {
      const auto seed = static_cast<std::uint64_t>(2 * t);
      std::vector<float> one = random_values(20, seed), other = random_values(20, seed + 1), sum(20);
      for (std::size_t i = 0; i < 20; ++i) sum[i] = one[i] + other[i];
      Optimizer(plain, undecayed).apply(expected, sum, expected_state, 0, {0.01f, 0.5f, t});
      EXPECT_EQ(optimizer.takes_momentum_in(t), t > kFrozenAfter);
      if (t > kFrozenAfter) {
        optimizer.own_momentum(weights, one, state, 0);
        optimizer.own_momentum(weights, other, state, 0);
        for (std::size_t i = 0; i < 20; ++i) sum[i] = one[i] + other[i];
      }
      // In two parts.
      const Range parts[] = {{0, 7}, {7, 20}};
      for (const Range& part : parts) {
        optimizer.apply(slice(std::span(weights), part), slice(std::span<const float>(sum), part), state, part.begin,
                        {0.01f, 0.5f, t});
      }
      if (t <= kFrozenAfter) ASSERT_EQ(weights, expected) << t;
    }
    for (std::size_t i = 0; i < 20; ++i) EXPECT_NEAR(weights[i], expected[i], 1e-5) << i;
  }
}

TEST(Optimizer, MovesNoWeightByMomentumWhoseVarianceWasFrozenAtZero) {
  const Optimizer optimizer({.kind = OptimizerKind::kAdam, .frozen_after = 1, .takes_momentum = true});
  OptimizerState state({.kind = OptimizerKind::kAdam}, 2);
  std::vector<float> weights{1, 1}, gradient{0, 2};
  optimizer.apply(weights, gradient, state, 0, {0.25f, 1, 1});
  gradient = {3, 3};
  optimizer.own_momentum(weights, gradient, state, 0);
  EXPECT_EQ(gradient[0], 0);
  EXPECT_GT(gradient[1], 0);
  optimizer.apply(weights, std::vector<float>{0.5f, 0.5f}, state, 0, {0.25f, 1, 2});
  EXPECT_EQ(weights[0], 1);
  EXPECT_LT(weights[1], 0.75f);
  EXPECT_EQ(state.memories()[0][0], 0);
  EXPECT_EQ(state.memories()[0][1], 0.5f);
}

TEST(Optimizer, UpdatesRowsFromGradientsWhateverElseTakesMomentum) {
  const OptimizerConfig plain{.kind = OptimizerKind::kAdam, .frozen_after = 1};
  OptimizerConfig config = plain;
  config.takes_momentum = true;
  std::vector<float> row = random_values(12, 1), expected = row;
  for (float& square : std::span(row).last(4)) square = 1;
  for (float& square : std::span(expected).last(4)) square = 1;
  const std::vector<float> gradient = random_values(4, 2);
  float* const rows[] = {row.data()};
  float* const expected_rows[] = {expected.data()};
  Optimizer(config).apply_rows(rows, gradient, 4, {0.1f, 1, 2});
  Optimizer(plain).apply_rows(expected_rows, gradient, 4, {0.1f, 1, 2});
  EXPECT_EQ(row, expected);
}

// However the arena is cut.
TEST(Optimizer, LeavesBiasesAndNormsOutOfWeightDecayUnlessAllIsAskedFor) {
  ParamLayout layout;
  layout.add("weight", {5, 7});
  layout.add("bias", {5});
  layout.add("scale", {20});
  layout.add("head", {3, 20});
  const std::vector<float> gradient = random_values(layout.size(), 1), initial = random_values(layout.size(), 2);
  for (OptimizerConfig config : kAllRules) {
    OptimizerConfig without = config;
    without.weight_decay = 0;
    for (const bool decay_all : {false, true}) {
      config.decay_all = decay_all;
      for (const std::size_t step : {layout.size(), std::size_t{16}, std::size_t{13}}) {
        std::vector<float> weights = initial;
        OptimizerState state(config, layout.size());
        for (std::size_t begin = 0; begin < layout.size(); begin += step) {
          const std::size_t size = std::min(step, layout.size() - begin);
          Optimizer(config, layout, {0, layout.size()})
              .apply(std::span(weights).subspan(begin, size), std::span(gradient).subspan(begin, size), state, begin,
                     {0.1f, 1, 1});
        }
        const std::vector<float> decayed = after(config, initial, {{0.1f, 1, 1}}, gradient);
        const std::vector<float> plain = after(without, initial, {{0.1f, 1, 1}}, gradient);
        for (const TensorSpec& tensor : layout.tensors()) {
          const bool decays = decay_all || tensor.shape.size() > 1;
          for (std::size_t i = tensor.range.begin; i < tensor.range.end; ++i) {
            EXPECT_EQ(weights[i], (decays ? decayed : plain)[i]) << tensor.name;
          }
        }
      }
    }
  }
}

// Against updates of the whole arena with each group's rate and decay.
TEST(Optimizer, UpdatesGroupsWithRatesAndDecaysOfTheirOwn) {
  constexpr std::size_t kSize = 60;
  const auto groups = std::make_shared<std::vector<UpdateGroup>>(
      std::vector<UpdateGroup>{{{3, 20}, 0.5f, 0.2f}, {{20, 31}, 0.0f, 0.0f}, {{40, 55}, 2.0f, 0.1f}});
  const std::vector<float> gradient = random_values(kSize, 1), initial = random_values(kSize, 2);
  for (OptimizerConfig config : kAllRules) {
    if (config.kind == OptimizerKind::kFtrl) continue;  // its decay is another
    config.decay_all = true;
    config.weight_decay = 0.1f;
    OptimizerConfig grouped = config;
    grouped.groups = groups;
    for (const std::size_t begin : {std::size_t{0}, std::size_t{16}}) {
      const std::size_t size = kSize - begin;
      const std::span<const float> own_gradient = std::span(gradient).subspan(begin);
      std::vector<float> weights(initial.begin() + static_cast<std::ptrdiff_t>(begin), initial.end());
      OptimizerState state(config, size);
      Optimizer(grouped, std::span<const Range>(), {begin, kSize}).apply(weights, own_gradient, state, 0, {0.1f, 1, 1});
      for (std::size_t i = 0; i < size; ++i) {
        const auto group = std::ranges::find_if(*groups, [&](const UpdateGroup& each) {
          return each.range.begin <= begin + i && begin + i < each.range.end;
        });
        const UpdateGroup own = group == groups->end() ? UpdateGroup{.rate_factor = 1, .weight_decay = 0.1f} : *group;
        OptimizerConfig rule = config;
        rule.weight_decay = own.weight_decay;
        EXPECT_EQ(weights[i], after(rule, initial, {{0.1f * own.rate_factor, 1, 1}}, gradient)[begin + i]) << i;
      }
    }
  }
}

TEST(Optimizer, AdagradDividesByTheRootOfTheSumOfSquares) {
  const OptimizerConfig config{.kind = OptimizerKind::kAdagrad, .epsilon = 1};
  // Sums: 9, 25. Weights: 10 - 2 · 3 / (3 + 1), then less 2 · 4 / (5 + 1).
  std::vector<float> weights{10};
  OptimizerState state(config, 1);
  Optimizer(config).apply(weights, std::vector{3.0f}, state, 0, {.learning_rate = 2});
  EXPECT_EQ(weights[0], 8.5f);
  Optimizer(config).apply(weights, std::vector{8.0f}, state, 0, {.learning_rate = 2, .gradient_scale = 0.5f});
  EXPECT_FLOAT_EQ(weights[0], 8.5f - 8.0f / 6);
}

TEST(Optimizer, AdagradsSumBeginsWithTheInitialAccumulator) {
  const OptimizerConfig config{.kind = OptimizerKind::kAdagrad, .epsilon = 1, .initial_accumulator = 16};
  EXPECT_THAT(after(config, {1}, {{2, 1, 1}}, {3}), ElementsAre(1 - 2.0f * 3 / (5 + 1)));
}

// Algorithm 1 of the paper, in double precision, from zero.
TEST(Optimizer, FtrlFollowsThePaperInDoublePrecision) {
  const double alpha = 0.5, beta = 2, l1 = 0.3, l2 = 0.7;
  const OptimizerConfig config{.kind = OptimizerKind::kFtrl, .beta = 2, .l1 = 0.3f, .l2 = 0.7f};
  std::vector<float> weights(8);
  OptimizerState state(config, weights.size());
  std::vector<double> z(8), n(8);
  int zeros = 0;
  for (int t = 1; t <= 50; ++t) {
    const std::vector<float> gradient = random_values(8, static_cast<std::uint64_t>(t));
    for (std::size_t i = 0; i < 8; ++i) {
      const double sign = z[i] < 0 ? -1 : 1;
      const double w = std::fabs(z[i]) <= l1 ? 0 : -(z[i] - sign * l1) / ((beta + std::sqrt(n[i])) / alpha + l2);
      EXPECT_NEAR(weights[i], w, 1e-5);
      zeros += t > 1 && weights[i] == 0;
      const double g = 0.5 * gradient[i];
      const double sigma = (std::sqrt(n[i] + g * g) - std::sqrt(n[i])) / alpha;
      z[i] += g - sigma * w;
      n[i] += g * g;
    }
    Optimizer(config).apply(weights, gradient, state, 0, {0.5f, 0.5f, t});
  }
  EXPECT_GT(zeros, 0) << "l1 must have been of effect";
}

TEST(Optimizer, FtrlGoesOnFromTheWeightsThatItIsGiven) {
  // Without a gradient nothing changes; the first one, of 3, moves a weight by 3 / ((1 + 3) / 0.5 + 1), whatever l1.
  const OptimizerConfig config{.kind = OptimizerKind::kFtrl, .beta = 1, .l1 = 0.25f, .l2 = 1};
  EXPECT_THAT(after(config, {0.1f, -7}, {{0.5f, 1, 1}, {0.5f, 1, 2}}, {0, 0}), ElementsAre(0.1f, -7));
  const std::vector<float> moved = after(config, {4, -7}, {{0.5f, 1, 1}}, {3, 3});
  // sigma · w = 6 w, and (beta / alpha + l2) w = 3 w: the weight is kept, as 9 w / 9.
  EXPECT_NEAR(moved[0], 4 - 3.0 / 9, 1e-6);
  EXPECT_NEAR(moved[1], -7 - 3.0 / 9, 1e-6);
}

// A rule's formula for one weight in double precision, with gradient g in update t and up to three memories.
struct Formula {
  OptimizerConfig config;
  void (*apply)(double& w, double g, int t, std::array<double, 3>& memory);
};

const Formula kFormulas[] = {
    {{.kind = OptimizerKind::kMomentum, .dampening = 0.25f},
     [](double& w, double g, int t, std::array<double, 3>& m) {
       m[0] = t == 1 ? g : 0.9 * m[0] + 0.75 * g;
       w -= 0.01 * m[0];
     }},
    {{.kind = OptimizerKind::kSgd, .maximize = true},
     [](double& w, double g, int, std::array<double, 3>&) { w += 0.01 * g; }},
    {{.kind = OptimizerKind::kAdam, .beta2 = 0.5f, .amsgrad = true},
     [](double& w, double g, int t, std::array<double, 3>& m) {
       m = {0.9 * m[0] + 0.1 * g, 0.5 * m[1] + 0.5 * g * g, std::max(m[2], 0.5 * m[1] + 0.5 * g * g)};
       w -= 0.01 * m[0] / (1 - std::pow(0.9, t)) / (std::sqrt(m[2] / (1 - std::pow(0.5, t))) + 1e-8);
     }},
    {{.kind = OptimizerKind::kAdagrad, .lr_decay = 0.5f},
     [](double& w, double g, int t, std::array<double, 3>& m) {
       m[0] += g * g;
       w -= 0.01 / (1 + 0.5 * (t - 1)) * g / (std::sqrt(m[0]) + 1e-8);
     }},
    {{.kind = OptimizerKind::kRmsprop, .momentum = 0.5f, .epsilon = 0.125f, .centered = true},
     [](double& w, double g, int, std::array<double, 3>& m) {
       m[0] = 0.9 * m[0] + 0.1 * g * g;
       m[1] = 0.9 * m[1] + 0.1 * g;
       m[2] = 0.5 * m[2] + g / (std::sqrt(m[0] - m[1] * m[1]) + 0.125);
       w -= 0.01 * m[2];
     }},
    {{.kind = OptimizerKind::kAdadelta, .epsilon = 0.125f},
     [](double& w, double g, int, std::array<double, 3>& m) {
       m[0] = 0.9 * m[0] + 0.1 * g * g;
       const double change = std::sqrt(m[1] + 0.125) / std::sqrt(m[0] + 0.125) * g;
       m[1] = 0.9 * m[1] + 0.1 * change * change;
       w -= 0.01 * change;
     }},
    {{.kind = OptimizerKind::kAdamax},
     [](double& w, double g, int t, std::array<double, 3>& m) {
       m = {0.9 * m[0] + 0.1 * g, std::max(0.999 * m[1], std::fabs(g) + 1e-8), 0};
       w -= 0.01 / (1 - std::pow(0.9, t)) * m[0] / m[1];
     }},
    // With these numbers the first four updates do not divide.
    {{.kind = OptimizerKind::kRadam},
     [](double& w, double g, int t, std::array<double, 3>& m) {
       m = {0.9 * m[0] + 0.1 * g, 0.999 * m[1] + 0.001 * g * g, 0};
       const double power = std::pow(0.999, t), most = 1999, length = most - 2 * t * power / (1 - power);
       const double mean = m[0] / (1 - std::pow(0.9, t));
       if (length <= 5) {
         EXPECT_LT(t, 6);
         w -= 0.01 * mean;
         return;
       }
       EXPECT_GE(t, 5);
       const double r = std::sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length));
       w -= 0.01 * r * mean * std::sqrt(1 - power) / (std::sqrt(m[1]) + 1e-8);
     }},
};

TEST(Optimizer, FollowsTheFormulaOfEachRuleInDoublePrecision) {
  for (const auto& [config, apply] : kFormulas) {
    std::vector<float> weights{0.5f, -2.0f, 3.0f};
    OptimizerState state(config, weights.size());
    std::vector<double> expected(weights.begin(), weights.end());
    std::vector<std::array<double, 3>> memories(3);
    for (int t = 1; t <= 50; ++t) {
      const std::vector<float> gradient = random_values(3, static_cast<std::uint64_t>(t));
      Optimizer(config).apply(weights, gradient, state, 0, {0.01f, 0.5f, t});
      for (std::size_t i = 0; i < 3; ++i) apply(expected[i], 0.5 * static_cast<double>(gradient[i]), t, memories[i]);
    }
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_NEAR(weights[i], expected[i], 1e-5) << static_cast<int>(config.kind);
    }
  }
}

ParamLayout small_layout() {
  ParamLayout layout;
  layout.add("weight", {5, 7});
  layout.add("bias", {5});
  layout.add("scale", {20});
  layout.add("head", {3, 20});
  return layout;
}

// Zero between tensors.
std::vector<float> random_values_in(const ParamLayout& layout, std::uint64_t seed) {
  const std::vector<float> drawn = random_values(layout.size(), seed);
  std::vector<float> values(layout.size());
  for (const TensorSpec& tensor : layout.tensors()) {
    std::ranges::copy(slice(std::span(drawn), tensor.range), slice(std::span(values), tensor.range).begin());
  }
  return values;
}

double norm_of(const std::vector<double>& values, Range range) {
  double sum = 0;
  for (std::size_t i = range.begin; i < range.end; ++i) sum += values[i] * values[i];
  return std::sqrt(sum);
}

// You, Gitman and Ginsburg 2017, algorithm 1, and You and others 2020, algorithm 2, in double precision.
TEST(Optimizer, GivesEachTensorOfSeveralDimensionsItsTrustRatio) {
  const ParamLayout layout = small_layout();
  const Range whole{0, layout.size()};
  for (const OptimizerKind kind : {OptimizerKind::kLars, OptimizerKind::kLamb}) {
    const OptimizerConfig config{.kind = kind, .trust_coefficient = 0.5f, .weight_decay = 0.1f};
    std::vector<float> weights = random_values_in(layout, 100);
    std::vector<double> w(weights.begin(), weights.end()), m(w.size()), v(w.size());
    OptimizerState state(config, layout.size());
    const Optimizer optimizer(config, layout, whole);
    for (int t = 1; t <= 20; ++t) {
      const std::vector<float> gradient = random_values_in(layout, static_cast<std::uint64_t>(t));
      optimizer.apply(weights, gradient, state, 0, {0.01f, 0.5f, t});
      for (const TensorSpec& tensor : layout.tensors()) {
        const bool adapts = tensor.shape.size() > 1;
        const double decay = adapts ? 0.1 : 0;
        std::vector<double> u(w.size());
        for (std::size_t i = tensor.range.begin; i < tensor.range.end; ++i) {
          const double g = 0.5 * static_cast<double>(gradient[i]);
          if (kind == OptimizerKind::kLamb) {
            m[i] = 0.9 * m[i] + 0.1 * g;
            v[i] = 0.999 * v[i] + 0.001 * g * g;
            u[i] = m[i] / (1 - std::pow(0.9, t)) / (std::sqrt(v[i] / (1 - std::pow(0.999, t))) + 1e-8) + decay * w[i];
          } else {
            u[i] = g;
          }
        }
        const double of_weights = norm_of(w, tensor.range), of_change = norm_of(u, tensor.range);
        const double ratio = !adapts                        ? 1
                             : kind == OptimizerKind::kLamb ? of_weights / of_change
                                                            : 0.5 * of_weights / (of_change + decay * of_weights);
        for (std::size_t i = tensor.range.begin; i < tensor.range.end; ++i) {
          if (kind == OptimizerKind::kLars) {
            m[i] = 0.9 * m[i] + 0.01 * ratio * (u[i] + decay * w[i]);
            w[i] -= m[i];
          } else {
            w[i] -= 0.01 * ratio * u[i];
          }
        }
      }
    }
    for (std::size_t i = 0; i < w.size(); ++i) EXPECT_NEAR(weights[i], w[i], 1e-5) << i;
  }
}

// By buckets, by chunks of a tensor each as servers have them, and tensor by tensor: the same bits.
TEST(Optimizer, KeepsTrustRatiosHoweverWholeTensorsAreUpdated) {
  const ParamLayout layout = small_layout();
  const Range whole{0, layout.size()};
  for (const OptimizerKind kind : {OptimizerKind::kLars, OptimizerKind::kLamb}) {
    const OptimizerConfig config{.kind = kind, .weight_decay = 0.1f};
    std::vector<float> together = random_values_in(layout, 1);
    std::vector<float> by_bucket = together, by_chunk = together;
    OptimizerState state(config, layout.size()), bucket_state(config, layout.size()),
        chunk_state(config, layout.size());
    for (int t = 1; t <= 5; ++t) {
      const std::vector<float> gradient = random_values_in(layout, static_cast<std::uint64_t>(10 + t));
      const std::span<const float> all = gradient;
      const UpdateStep step{0.1f, 1, t};
      const Optimizer optimizer(config, layout, whole);
      optimizer.apply(together, all, state, 0, step);
      for (const Range& bucket : buckets_in_backward_order(layout, 200)) {
        optimizer.apply(slice(std::span(by_bucket), bucket), slice(all, bucket), bucket_state, bucket.begin, step);
      }
      for (std::size_t i = 0; i < layout.tensors().size(); ++i) {
        const bool is_last = i + 1 == layout.tensors().size();
        const Range chunk{layout.tensors()[i].range.begin,
                          is_last ? layout.size() : layout.tensors()[i + 1].range.begin};
        const std::vector<Range> undecayed = ranges_within(undecayed_ranges(layout), chunk);
        OptimizerState own(config, chunk.size());
        TrainingState saved;
        chunk_state.save(chunk, 0, saved);
        ASSERT_TRUE(own.restore({0, chunk.size()}, chunk.begin, saved).ok());
        Optimizer(config, undecayed, chunk).apply(slice(std::span(by_chunk), chunk), slice(all, chunk), own, 0, step);
        saved.clear();
        own.save({0, chunk.size()}, chunk.begin, saved);
        ASSERT_TRUE(chunk_state.restore(chunk, 0, saved).ok());
      }
      ASSERT_EQ(by_bucket, together);
      ASSERT_EQ(by_chunk, together);
    }
  }
}

TEST(Optimizer, UpdatesOfPartsInAnyOrderGiveTheSameBitsAsTheWhole) {
  constexpr std::size_t kSize = 1003;  // ends inside a vector register
  for (const OptimizerConfig& config : kAllRules) {
    std::vector<float> whole = random_values(kSize, 1), parts = whole;
    OptimizerState whole_state(config, kSize), parts_state(config, kSize);
    for (std::int64_t number = 1; number <= 4; ++number) {
      const std::vector<float> gradient = random_values(kSize, 1 + static_cast<std::uint64_t>(number));
      const UpdateStep step{0.01f, 0.3f, number};
      Optimizer(config).apply(whole, gradient, whole_state, 0, step);
      std::vector<Range> ranges = balanced_ranges(kSize, static_cast<std::size_t>(2 * number + 1));
      std::reverse(ranges.begin(), ranges.end());
      for (const Range& range : ranges) {
        Optimizer(config).apply(slice(std::span<float>(parts), range), slice(std::span<const float>(gradient), range),
                                parts_state, range.begin, step);
      }
      ASSERT_THAT(parts, ElementsAreArray(whole));
    }
  }
}

TEST(Optimizer, AnElementsResultDoesNotDependOnWhereItLies) {
  // One element alone goes through the scalar code that ends a range; among others, through the vector code.
  for (const OptimizerConfig& config : kAllRules) {
    const std::vector<float> gradient = random_values(64, 2);
    const std::vector<UpdateStep> steps{{0.01f, 0.3f, 1}, {0.01f, 0.3f, 2}, {0.01f, 0.3f, 3}};
    const std::vector<float> together = after(config, random_values(64, 1), steps, gradient);
    for (std::size_t i = 0; i < 64; ++i) {
      const std::vector<float> alone = after(config, {random_values(64, 1)[i]}, steps, {gradient[i]});
      EXPECT_EQ(alone[0], together[i]);
    }
  }
}

TEST(Optimizer, RemembersNoMoreThanItsRuleNeeds) {
  EXPECT_EQ(OptimizerState({.kind = OptimizerKind::kSgd}, 100).bytes(), 0u);
  EXPECT_EQ(OptimizerState({.kind = OptimizerKind::kMomentum}, 100).bytes(), 400u);
  EXPECT_EQ(OptimizerState({.kind = OptimizerKind::kAdam}, 100).bytes(), 800u);
  EXPECT_EQ(OptimizerState({.kind = OptimizerKind::kAdamW}, 100).bytes(), 800u);
  EXPECT_EQ(OptimizerState({.kind = OptimizerKind::kAdagrad}, 100).bytes(), 400u);
  EXPECT_EQ(OptimizerState({.kind = OptimizerKind::kFtrl}, 100).bytes(), 800u);
  EXPECT_EQ(OptimizerState({.kind = OptimizerKind::kAdam, .amsgrad = true}, 100).bytes(), 1200u);
  EXPECT_EQ(OptimizerState({.kind = OptimizerKind::kRmsprop, .momentum = 0}, 100).bytes(), 400u);
  EXPECT_EQ(OptimizerState({.kind = OptimizerKind::kRmsprop, .centered = true}, 100).bytes(), 1200u);
}

TEST(Optimizer, LeavesZeroPaddingZero) {
  for (const OptimizerConfig& config : kAllRules) {
    EXPECT_THAT(after(config, {0, 0}, {{0.1f, 1, 1}, {0.1f, 1, 2}}, {0, 0}), ElementsAre(0, 0));
  }
}

}  // namespace
}  // namespace syncopate
