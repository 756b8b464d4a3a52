#include "prediction/step_prediction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace syncopate::prediction {
namespace {

using testing::HasSubstr;

constexpr double kRounding = 1e-9;

// Three layers of equal work, of 100, 200 and 300 bytes. With a step of 9 s: each layer forward 1 s, backward 2 s, and
// gradients ready at 5, 7 and 9 s, the largest first.
ModelProfile three_layers() {
  ModelProfile profile{.model = "toy"};
  for (const int size : {25, 50, 75}) {
    profile.tensors.push_back(
        {.name = std::to_string(size), .shape = {size, 1}, .parameters = size, .forward_flops = 10});
  }
  return profile;
}

double step_of(const Network& network, const ExchangePlan& plan) {
  const Result<StepPrediction> prediction = predict_step(three_layers(), 9, network, plan);
  EXPECT_TRUE(prediction.ok()) << prediction.status().message();
  return prediction.ok() ? prediction->step : 0;
}

TEST(StepPrediction, HidesAllreduceBehindTheBackwardPass) {
  // 2 ranks move S bytes in S/B: at 100 bytes/s buckets of 3, 2 and 1 s, which end at 8, 10 and 11 s.
  const Network network{.bytes_per_second = 100, .workers = 2};
  EXPECT_NEAR(step_of(network, {.exchange = Exchange::kRing}), 11, kRounding);
  EXPECT_NEAR(step_of(network, {.exchange = Exchange::kRing, .overlap = false}), 15, kRounding);
  // Buckets of at most 400 bytes: 300 end at 8 s, and the other 300, which are ready at 9 s, at 12 s.
  EXPECT_NEAR(step_of(network, {.exchange = Exchange::kRing, .bucket_bytes = 400}), 12, kRounding);
  // A fast network leaves the exchange of the first layer alone: 9 s + 0.01 s.
  EXPECT_NEAR(step_of({.bytes_per_second = 10000, .workers = 2}, {.exchange = Exchange::kRing}), 9.01, kRounding);
}

// Weights are gathered in 0.5, 1 and 1.5 s: the first is waited for, and the third, 0.5 s; backward then begins at 4 s,
// and its sums end at 7.5, 9 and 10.5 s. Over half the rate, forward ends at 7 s and its sums at 12, 14 and 15 s.
TEST(StepPrediction, GathersWeightsBesideForwardWhereTheStateIsSharded) {
  const Network network{.bytes_per_second = 100, .workers = 2};
  EXPECT_NEAR(step_of(network, {.exchange = Exchange::kRing, .stage = 1}), 10.5, kRounding);
  EXPECT_NEAR(step_of({.bytes_per_second = 50, .workers = 2}, {.exchange = Exchange::kRing, .stage = 2}), 15,
              kRounding);
  EXPECT_NEAR(step_of(network, {.exchange = Exchange::kRing, .overlap = false, .stage = 2}), 15, kRounding);
  EXPECT_THAT(check_step(three_layers(), 9, network, {.exchange = Exchange::kTree, .stage = 1}).message(),
              HasSubstr("where a ring exchanges gradients"));
}

// Gathers of 0.5, 1 and 1.5 s: the first is waited for, and the third, 0.5 s; backward then begins at 4 s. Its sums end
// at 7.5, 9 and 10.5 s, and its one gather, as the second layer is still there, in time.
TEST(StepPrediction, HidesTheGatheringOfWeightsBehindTheLayerBefore) {
  const Network network{.bytes_per_second = 100, .workers = 2};
  EXPECT_NEAR(step_of(network, {.exchange = Exchange::kRing, .stage = 3}), 10.5, kRounding);
  EXPECT_NEAR(step_of(network, {.exchange = Exchange::kRing, .overlap = false, .stage = 3}), 9 + 3 + 1.5 + 3,
              kRounding);
  EXPECT_NEAR(predict_step(three_layers(), 9, network, {.exchange = Exchange::kRing, .stage = 3})->communication, 6.5,
              kRounding);
  // A bias, here of 100 bytes, is gathered with its layer: forward begins at 1 s and backward at 4.5 s; the last sums
  // end 1 s behind it.
  ModelProfile with_bias = three_layers();
  with_bias.tensors.insert(with_bias.tensors.begin() + 1, {.name = "bias", .shape = {25}, .parameters = 25});
  EXPECT_NEAR(predict_step(with_bias, 9, network, {.exchange = Exchange::kRing, .stage = 3})->step, 12, kRounding);
}

// As a run fills them (common/param_layout.h).
TEST(StepPrediction, FillsABucketUpToItsSize) {
  const std::vector<double> tensors{100, 200, 300};
  EXPECT_EQ(bucket_sizes(tensors, 400), (std::vector<double>{300, 300}));
  EXPECT_EQ(bucket_sizes(tensors, 250), (std::vector<double>{300, 200, 100}));
  EXPECT_EQ(bucket_sizes(tensors, 0), (std::vector<double>{300, 200, 100}));
  EXPECT_EQ(bucket_sizes(tensors, 600), std::vector<double>{600});
}

TEST(StepPrediction, CountsAMessageOfEachBucketAndNothingForOneWorker) {
  const Network network{.alpha = 0.5, .bytes_per_second = 100, .workers = 2};
  EXPECT_NEAR(step_of(network, {.exchange = Exchange::kRing}), 14, kRounding);  // buckets of 4, 3 and 2 s: 9, 12, 14 s
  for (const Exchange exchange : {Exchange::kRing, Exchange::kTree}) {
    EXPECT_EQ(step_of({.alpha = 1, .bytes_per_second = 1, .workers = 1}, {.exchange = exchange}), 9);
  }
}

TEST(StepPrediction, TreeMovesEverythingOnEachLevel) {
  // 4 ranks: 4 S/B, so 1.2, 0.8 and 0.4 s at 1000 bytes/s; the last begins at 9 s.
  EXPECT_NEAR(step_of({.bytes_per_second = 1000, .workers = 4}, {.exchange = Exchange::kTree}), 9.4, kRounding);
}

constexpr ServerProtocol kPull = ServerProtocol::kPullThenPush;

TEST(StepPrediction, EvenShardsFillTheLinksOfServersOrOfWorkers) {
  const ExchangePlan two{.exchange = Exchange::kServers, .overlap = false, .servers = 2, .protocol = kPull};
  // 8 workers, 2 separate servers: each carries 8 x 300 bytes each way, 2 x 24 s at 100 bytes/s.
  EXPECT_NEAR(step_of({.bytes_per_second = 100, .workers = 8}, two), 9 + 48, kRounding);
  // One worker: its own link carries 600 bytes each way.
  EXPECT_NEAR(step_of({.bytes_per_second = 100, .workers = 1}, two), 9 + 12, kRounding);
}

TEST(StepPrediction, ColocatedEvenShardsTakeAsLongAsARing) {
  const Network network{.bytes_per_second = 100, .workers = 4};
  EXPECT_NEAR(step_of(network, {.exchange = Exchange::kServers, .overlap = false, .servers = 4, .colocated = true}),
              step_of(network, {.exchange = Exchange::kRing, .overlap = false, .bucket_bytes = 1e9}), kRounding);
  EXPECT_EQ(step_of({.bytes_per_second = 1, .workers = 1}, {.exchange = Exchange::kServers, .colocated = true}), 9);
}

// Without overlap all links are full from the first gradient to the last answer.
TEST(StepPrediction, SpareServersBesideColocatedOnesTakeBytepsOptimum) {
  for (const int hosts : {2, 4, 8}) {
    for (int spare = 0; spare < hosts; ++spare) {
      const Network network{.bytes_per_second = 100, .workers = hosts};
      const ExchangePlan plan{.exchange = Exchange::kServers,
                              .overlap = false,
                              .servers = hosts,
                              .colocated = true,
                              .spare_servers = spare};
      EXPECT_NEAR(step_of(network, plan), 9 + byteps_seconds(600, network, spare), kRounding) << hosts << " " << spare;
    }
  }
}

TEST(StepPrediction, LayersWaitForTheirPullsAndTheStepForItsPushes) {
  // 1 worker, 1 separate server, 100 bytes/s. Pulls arrive at 1, 3 and 6 s, so layers run at 1, 3 and 6 s: forward ends
  // at 7 s. Gradients are ready at 9, 11 and 13 s and pushed by 12, 14 and 15 s.
  EXPECT_NEAR(step_of({.bytes_per_second = 100, .workers = 1}, {.exchange = Exchange::kServers, .protocol = kPull}), 15,
              kRounding);
}

TEST(StepPrediction, ServersAnswerWhileOthersPush) {
  // 1 worker, 1 separate server, 100 bytes/s: gradients are ready at 5, 7 and 9 s, and pushed by 8, 10 and 11 s, from
  // when on their answers take 3, 2 and 1 s of the other direction.
  EXPECT_NEAR(step_of({.bytes_per_second = 100, .workers = 1}, {.exchange = Exchange::kServers}), 14, kRounding);
  // Behind the backward pass: pushed by 12, 14 and 15 s.
  EXPECT_NEAR(step_of({.bytes_per_second = 100, .workers = 1}, {.exchange = Exchange::kServers, .overlap = false}), 18,
              kRounding);
  // Each message costs alpha.
  EXPECT_NEAR(step_of({.alpha = 0.5, .bytes_per_second = 100, .workers = 1}, {.exchange = Exchange::kServers}), 15,
              kRounding);
}

TEST(StepPrediction, ALargeTensorIsAnsweredInChunks) {
  ModelProfile profile;
  const std::int64_t parameters = 1 << 24;  // 64 chunks
  profile.tensors.push_back({.name = "fc", .shape = {parameters}, .parameters = parameters, .forward_flops = 10});
  const ExchangePlan one{.exchange = Exchange::kServers};
  const double push = 4.0 * parameters / 1e6;
  EXPECT_NEAR(predict_step(profile, 9, {.bytes_per_second = 1e6, .workers = 1}, one)->step, 9 + push * 65 / 64,
              kRounding);
}

TEST(StepPrediction, AWholeVariableKeepsOneServerBusy) {
  // Greedy on 3 servers: one layer each. 4 workers, no overlap: the 300 bytes are carried 4 times each way, 2 x 12 s;
  // in even shards, 4 x 200 bytes, 2 x 8 s.
  const Network network{.bytes_per_second = 100, .workers = 4};
  ExchangePlan plan{
      .exchange = Exchange::kServers, .overlap = false, .servers = 3, .sharding = Sharding::kWhole, .protocol = kPull};
  EXPECT_NEAR(step_of(network, plan), 9 + 24, kRounding);
  plan.sharding = Sharding::kEven;
  EXPECT_NEAR(step_of(network, plan), 9 + 16, kRounding);
}

TEST(StepPrediction, BytepsTakesItsOptimum) {
  // 2 hosts, 2 with servers alone: M/B, buckets of 3, 2 and 1 s, as a ring of 2.
  EXPECT_NEAR(step_of({.bytes_per_second = 100, .workers = 2}, {.exchange = Exchange::kByteps, .servers = 2}), 11,
              kRounding);
}

TEST(StepPrediction, SaysWhatIsOutOfRange) {
  const Network good{.bytes_per_second = 1, .workers = 2};
  const auto fault = [](double compute, const Network& network, const ExchangePlan& plan) {
    return predict_step(three_layers(), compute, network, plan).status().message();
  };
  EXPECT_THAT(fault(0, good, {}), HasSubstr("must be above 0"));
  EXPECT_NE(fault(std::numeric_limits<double>::quiet_NaN(), good, {}), "");
  EXPECT_NE(fault(1, {.bytes_per_second = 0, .workers = 2}, {}), "");
  EXPECT_NE(fault(1, {.alpha = -1, .bytes_per_second = 1}, {}), "");
  EXPECT_THAT(fault(1, {.bytes_per_second = 1, .workers = 0}, {}), HasSubstr("0 workers"));
  EXPECT_THAT(fault(1, good, {.exchange = Exchange::kServers, .servers = 0}), HasSubstr("0 servers: must be 1"));
  EXPECT_THAT(fault(1, good, {.exchange = Exchange::kServers, .servers = 3, .colocated = true}),
              HasSubstr("must be at most 2"));
  const ExchangePlan even{.exchange = Exchange::kServers, .servers = 2, .colocated = true, .spare_servers = 1};
  EXPECT_EQ(fault(1, good, even), "");
  ExchangePlan others[] = {even, even, even, even, {.exchange = Exchange::kRing, .spare_servers = 1}};
  others[0].spare_servers = 2;
  others[1].servers = 1;
  others[2].colocated = false;
  others[3].sharding = Sharding::kWhole;
  for (const ExchangePlan& other : others) EXPECT_THAT(fault(1, good, other), HasSubstr("spare servers: must be from"));
  EXPECT_NE(predict_step({}, 1, good, {}).status().message(), "");
}

}  // namespace
}  // namespace syncopate::prediction
