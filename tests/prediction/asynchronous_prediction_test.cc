#include "prediction/asynchronous_prediction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate::prediction {
namespace {

using testing::HasSubstr;

constexpr double kRounded = 1e-9;

// 100, 200 and 300 bytes of equal work. With a step of 9 s: each layer forward 1 s, backward 2 s.
ModelProfile layers() {
  ModelProfile profile{.model = "toy"};
  for (const int size : {25, 50, 75}) {
    profile.tensors.push_back({.name = std::to_string(size), .shape = {size}, .parameters = size, .forward_flops = 10});
  }
  return profile;
}

double asynchronous_step(const Network& network, const ExchangePlan& plan) {
  const Result<StepPrediction> prediction = predict_asynchronous_step(layers(), 9, network, plan);
  EXPECT_TRUE(prediction.ok()) << prediction.status().message();
  return prediction.ok() ? prediction->step : 0;
}

TEST(AsynchronousPrediction, IsBoundByTheServersLinks) {
  // 40 workers on 2 servers: 40 x 600 / 2 bytes at 100 bytes/s.
  EXPECT_NEAR(
      asynchronous_step({.bytes_per_second = 100, .workers = 40}, {.exchange = Exchange::kServers, .servers = 2}), 120,
      kRounded);
}

TEST(AsynchronousPrediction, IsBoundByAWorkerWithAllLinksToItself) {
  // Gradients of 300, 200 and 100 bytes are ready at 2, 4 and 6 s. Pushed by 5, 7 and 8 s, answered by 8, 10 and 11 s.
  // The forward pass begins with the last answer: 14 s.
  const ExchangePlan one{.exchange = Exchange::kServers, .servers = 1};
  EXPECT_NEAR(asynchronous_step({.bytes_per_second = 100, .workers = 1}, one), 14, kRounded);
  // A message to the server and one back.
  EXPECT_NEAR(asynchronous_step({.alpha = 0.25, .bytes_per_second = 100, .workers = 1}, one), 14.5, kRounded);
  // Halves of tensors: answers begin after 1.5 s and end at 6.5, 8.5 and 9.5 s.
  EXPECT_NEAR(
      asynchronous_step({.bytes_per_second = 100, .workers = 1}, {.exchange = Exchange::kServers, .servers = 2}), 12.5,
      kRounded);
}

TEST(AsynchronousPrediction, HidesWhatAFastLinkCarriesButTheFirstLayers) {
  // The last gradient's 100 bytes there and back, at 10000 bytes/s.
  EXPECT_NEAR(
      asynchronous_step({.bytes_per_second = 10000, .workers = 1}, {.exchange = Exchange::kServers, .servers = 1}),
      9.02, kRounded);
}

TEST(AsynchronousPrediction, SendsNothingWhereAllIsOnOneHost) {
  EXPECT_NEAR(asynchronous_step({.alpha = 1, .bytes_per_second = 1, .workers = 4, .workers_per_host = 4},
                                {.exchange = Exchange::kServers, .colocated = true}),
              9, kRounded);
}

// Links decide where they are slow: 2 hosts and 1 more send 600 bytes each in a step.
TEST(AsynchronousPrediction, FillsTheLinksOfSpareServersAsThoseOfHosts) {
  const ExchangePlan plan{.exchange = Exchange::kServers, .servers = 2, .colocated = true, .spare_servers = 1};
  const Network network{.bytes_per_second = 10, .workers = 2};
  EXPECT_NEAR(predict_asynchronous_step(layers(), 9, network, plan)->communication, 60, kRounded);
  // A quarter of each tensor is the worker's own.
  ExchangePlan half = plan;
  half.spare_servers = 0;
  const Network fast{.bytes_per_second = 1000, .workers = 2};
  EXPECT_GT(asynchronous_step(fast, plan), asynchronous_step(fast, half));
}

// Real processes behind emulated links, as docs/simulated_cluster.md shows them: an mlp of 784-256-256-10, two servers,
// a computation that hardly counts. A bound is not above them, and comes near where the servers' links decide.
TEST(AsynchronousPrediction, IsNotAboveWhatWasMeasured) {
  ModelProfile mlp{.model = "mlp"};
  for (const std::int64_t size : {200704, 256, 65536, 256, 2560, 10}) {
    mlp.tensors.push_back({.name = std::to_string(mlp.tensors.size()),
                           .shape = {size},
                           .parameters = size,
                           .forward_flops = 2.0 * static_cast<double>(size)});
  }
  const auto milliseconds = [&](int workers, double bits_per_second) {
    const Network network{.alpha = 1e-3, .bytes_per_second = bits_per_second / 8 * 1448 / 1538, .workers = workers};
    const ExchangePlan plan{.exchange = Exchange::kServers, .servers = 2};
    return 1e3 * predict_asynchronous_step(mlp, 1e-3, network, plan)->step;
  };
  EXPECT_LT(milliseconds(2, 20e6), 691);
  EXPECT_GT(milliseconds(2, 20e6), 0.85 * 691);
  EXPECT_NEAR(milliseconds(4, 20e6), 916, 0.01 * 916);
  EXPECT_LT(milliseconds(2, 100e6), 142);
  EXPECT_LT(milliseconds(4, 100e6), 190);
}

TEST(AsynchronousPrediction, SaysWhatItCannotPredict) {
  const Network good{.bytes_per_second = 1, .workers = 2};
  EXPECT_THAT(predict_asynchronous_step(layers(), 9, good, {}).status().message(), HasSubstr("must be one of servers"));
  EXPECT_THAT(predict_asynchronous_step(layers(), 0, good, {.exchange = Exchange::kServers}).status().message(),
              HasSubstr("must be above 0"));
  EXPECT_NE(predict_asynchronous_step({}, 9, good, {.exchange = Exchange::kServers}).status().message(), "");
}

}  // namespace
}  // namespace syncopate::prediction
