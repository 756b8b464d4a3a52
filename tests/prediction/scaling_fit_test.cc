#include "prediction/scaling_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "common/random.h"

namespace syncopate::prediction {
namespace {

using testing::HasSubstr;

constexpr double kCompute = 0.3;

const ModelProfile& resnet() {
  static const ModelProfile profile = *built_in_profile("resnet50");
  return profile;
}

Network network(int workers) { return {.alpha = 50e-6, .bytes_per_second = 1.25e9, .workers = workers}; }

const ExchangePlan kRing{.exchange = Exchange::kRing, .bucket_bytes = 25e6};

// A cluster that does what the fit takes clusters to do, with an exchange that costs `fixed` and hides `hidden`.
struct Cluster {
  double alone = kCompute;
  double fixed = 0;
  double share = 1;
  double hidden = 1;
  double decline = 0;

  double step(int workers) const {
    if (workers == 1) return alone;
    Network slower = network(workers);
    slower.bytes_per_second *= share * std::pow(workers, -decline);
    ExchangePlan apart = kRing;
    apart.overlap = false;
    const double beside = predict_step(resnet(), kCompute, slower, kRing)->step - kCompute;
    const double behind = predict_step(resnet(), kCompute, slower, apart)->step - kCompute;
    return alone * (1 + fixed) + hidden * beside + (1 - hidden) * behind;
  }
  std::vector<MeasuredStep> measured(const std::vector<int>& sizes) const {
    std::vector<MeasuredStep> steps;
    for (const int workers : sizes) steps.push_back({network(workers), kRing, step(workers)});
    return steps;
  }
};

ScalingFit fit_to(const std::vector<MeasuredStep>& measured) { return *ScalingFit::of(resnet(), kCompute, measured); }

bool holds(const FittedValue& value, double truth) { return value.low <= truth && truth <= value.high; }

TEST(ScalingFit, ComesToWhatWasMeasured) {
  const Cluster slow{.fixed = 0.05, .share = 0.3, .hidden = 0.7};
  const ScalingFit fit = fit_to(slow.measured({1, 4, 8}));
  for (const int workers : {1, 4, 8}) {
    EXPECT_NEAR(fit.step(network(workers), kRing)->median / slow.step(workers), 1, 0.02) << workers;
  }
}

// What an exchange exposes may be its fixed cost, too, as far as three sizes tell.
TEST(ScalingFit, FindsALinkThatIsSlowerThanItsRate) {
  const auto share_of = [](const Cluster& cluster) {
    return fit_to(cluster.measured({1, 2, 16})).value(Unknown::kLinkShare);
  };
  const FittedValue slow = share_of({.share = 0.1, .hidden = 0, .decline = 0.1});
  const FittedValue fast = share_of({.share = 0.9, .decline = 0.1});
  EXPECT_TRUE(holds(slow, 0.1)) << slow.low << " to " << slow.high;
  EXPECT_LT(slow.median, fast.median / 2);
}

// Clusters are drawn, measured with noise at three sizes, and asked for a fourth.
TEST(ScalingFit, HoldsNineOfTenDrawnClustersInItsIntervals) {
  constexpr int kClusters = 60;
  Random random(11);
  int inside = 0;
  std::vector<double> errors;
  for (int i = 0; i < kClusters; ++i) {
    const Cluster cluster{.alone = kCompute * random.uniform(0.97, 1.03),
                          .fixed = random.uniform(0, 0.06),
                          .share = random.uniform(0.15, 0.9),
                          .hidden = random.uniform(0.3, 1),
                          .decline = 0.1 * std::exp(0.7 * random.normal())};
    std::vector<MeasuredStep> measured = cluster.measured({1, 4, 8});
    for (MeasuredStep& step : measured) step.seconds *= std::exp(0.01 * random.normal());
    const FittedValue step = *fit_to(measured).step(network(32), kRing);
    inside += holds(step, cluster.step(32)) ? 1 : 0;
    errors.push_back(std::abs(step.median / cluster.step(32) - 1));
  }
  EXPECT_GE(inside, kClusters * 9 / 10);
  std::ranges::sort(errors);
  EXPECT_LT(errors[errors.size() / 2], 0.05);
}

TEST(ScalingFit, IsSurerOfNearSizesAndOfMoreMeasurements) {
  const Cluster slow{.share = 0.3, .hidden = 0.7};
  const auto width = [](const FittedValue& value) { return (value.high - value.low) / value.median; };
  const ScalingFit two = fit_to(slow.measured({1, 4})), four = fit_to(slow.measured({1, 4, 8, 16}));
  EXPECT_LT(width(*four.step(network(32), kRing)), width(*two.step(network(32), kRing)));
  EXPECT_LT(width(*four.step(network(32), kRing)), width(*four.step(network(256), kRing)));
}

TEST(ScalingFit, IsTheSameAtEveryCallAndKnowsWhatItWasToldNothingOf) {
  const Cluster fast;
  const ScalingFit one = fit_to(fast.measured({1, 8})), other = fit_to(fast.measured({1, 8}));
  EXPECT_EQ(one.step(network(32), kRing)->median, other.step(network(32), kRing)->median);
  EXPECT_NEAR(one.prior(Unknown::kAlone).median, kCompute, 1e-12);
  // On one host nothing crosses a link.
  std::vector<MeasuredStep> inside = fast.measured({1, 8});
  for (MeasuredStep& step : inside) step.network.workers_per_host = 8;
  const ScalingFit fit = fit_to(inside);
  const FittedValue before = fit.prior(Unknown::kDecline), after = fit.value(Unknown::kDecline);
  EXPECT_NEAR(before.low, 0.1 * std::exp(-1.645), 1e-9);
  EXPECT_GT(after.high - after.low, 0.8 * (before.high - before.low));
}

TEST(ScalingFit, RefusesWhatItCannotGoBy) {
  EXPECT_THAT(ScalingFit::of(resnet(), kCompute, {}).status().message(), HasSubstr("needs a measured step"));
  const std::vector<MeasuredStep> wrong = {{network(0), kRing, 0.3}};
  EXPECT_FALSE(ScalingFit::of(resnet(), kCompute, wrong).ok());
}

}  // namespace
}  // namespace syncopate::prediction
