#include "prediction/advice/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace syncopate::prediction {
namespace {

// One tensor of 400 bytes: nothing overlaps but what no form can hide.
AdvisedJob one_tensor_job() {
  AdvisedJob job{.profile = {.model = "toy"}, .compute = 3};
  job.profile.tensors.push_back({.name = "all", .shape = {100}, .parameters = 100, .forward_flops = 1});
  return job;
}

const SearchSpace kSpace{.servers = {1, 2, 4}, .shardings = {Sharding::kEven}, .bucket_bytes = {0}};

// The best synchronous one of either mode; null if there is none.
const Candidate* best_of(const SearchResult& result, bool servers) {
  const auto found = std::ranges::find_if(result.best, [&](const Candidate& candidate) {
    return !candidate.way.asynchronous && candidate.way.family() == (servers ? Family::kServers : Family::kAllreduce);
  });
  return found == result.best.end() ? nullptr : &*found;
}

Network eight(double bytes_per_second) { return {.bytes_per_second = bytes_per_second, .workers = 8}; }

TEST(Search, KeepsTheBestOfEachKindInOrder) {
  const Result<SearchResult> result = search(one_tensor_job(), eight(100), kSpace);
  ASSERT_TRUE(result.ok()) << result.status().message();
  // Three of allreduce, three stages, and servers here and there, synchronous or not.
  EXPECT_EQ(result->best.size(), 10u);
  for (std::size_t i = 1; i < result->best.size(); ++i) EXPECT_LE(result->best[i - 1].score, result->best[i].score);
  // A ring takes 2 x 7/8 x 4 s behind the backward pass.
  ASSERT_NE(best_of(*result, false), nullptr);
  EXPECT_DOUBLE_EQ(best_of(*result, false)->prediction.step, 3 + 7);
  // A server on each of 8 hosts takes as long; more of the servers elsewhere that were asked for come to 2 x 8/4 x 4 s.
  ASSERT_NE(best_of(*result, true), nullptr);
  EXPECT_TRUE(best_of(*result, true)->way.plan.colocated);
  EXPECT_EQ(best_of(*result, true)->way.plan.servers, 8);
  EXPECT_DOUBLE_EQ(best_of(*result, true)->prediction.step, 3 + 7);
  const auto separate = std::ranges::find_if(result->best, [](const Candidate& candidate) {
    return candidate.way.plan.exchange == Exchange::kServers && !candidate.way.plan.colocated &&
           !candidate.way.asynchronous;
  });
  ASSERT_NE(separate, result->best.end());
  EXPECT_EQ(separate->way.plan.servers, 4);
  // 1 and 2 servers elsewhere; 1, 2 and 4 on workers' hosts; each synchronous or not.
  EXPECT_EQ(result->others.size(), 10u);
  EXPECT_DOUBLE_EQ(separate->prediction.step, 3 + 16);
}

// With 4 workers a host, a server on each of 2 hosts carries 2 x 1/2 x 4 s of what hosts have summed, as a ring of two
// levels does between them.
TEST(Search, HasServersThatTakeOnePushAHostWhereHostsHaveSeveralWorkers) {
  Network network = eight(100);
  network.workers_per_host = 4;
  const Result<SearchResult> result = search(one_tensor_job(), network, kSpace);
  ASSERT_TRUE(result.ok()) << result.status().message();
  const Candidate* const best = best_of(*result, true);
  ASSERT_NE(best, nullptr);
  EXPECT_TRUE(best->way.plan.aggregated);
  EXPECT_DOUBLE_EQ(best->prediction.step, 3 + 4);
  EXPECT_DOUBLE_EQ(best->least, 4.0 / 8);
  for (const Candidate& candidate : result->best)
    EXPECT_FALSE(candidate.way.asynchronous && candidate.way.plan.aggregated);
}

TEST(Search, WeighsHostsByTheirPriceWhereTheCheapestIsWanted) {
  AdvisedJob job = one_tensor_job();
  job.goal = Goal::kCheapest;
  job.prices = {.worker = 1, .server = 100};
  SearchSpace separate = kSpace;
  separate.colocated = false;
  const SearchResult result = *search(job, eight(100), separate);
  // 1 server: 3 + 64 s of 108 an hour; 2: 3 + 32 s of 208; 4: 3 + 16 s of 408.
  ASSERT_NE(best_of(result, true), nullptr);
  EXPECT_EQ(best_of(result, true)->way.plan.servers, 1);
  EXPECT_DOUBLE_EQ(best_of(result, true)->score, 67.0 / 8 * 108);
}

TEST(Search, LeavesOutWhatDoesNotFitAndSaysWhatItNeeds) {
  AdvisedJob job = one_tensor_job();
  job.state_floats = 2;
  job.memory_bytes = 1000;  // weights and gradients are 800 bytes, Adam's state as much
  const SearchResult result = *search(job, eight(100), kSpace);
  EXPECT_EQ(best_of(result, false), nullptr);
  ASSERT_NE(best_of(result, true), nullptr);
  ASSERT_GE(result.too_large.size(), 3u);
  EXPECT_EQ(result.too_large.front().way.plan.exchange, Exchange::kRing);
  EXPECT_DOUBLE_EQ(result.too_large.front().bytes, 1600);
}

// At each stage an eighth of more is on each of 8 workers, but for one of four tensors, of 100 bytes.
TEST(Search, FindsTheStagesThatFit) {
  AdvisedJob job = one_tensor_job();
  const TensorProfile quarter{.name = "q", .shape = {25}, .parameters = 25, .forward_flops = 10};
  job.profile.tensors.assign(4, quarter);
  job.state_floats = 2;
  const auto stages_within = [&](double bytes) {
    job.memory_bytes = bytes;
    std::vector<int> stages;
    for (const Candidate& candidate : search(job, eight(100), kSpace)->best) {
      if (candidate.way.family() == Family::kSharded) stages.push_back(candidate.way.plan.stage);
    }
    std::ranges::sort(stages);
    return stages;
  };
  EXPECT_THAT(stages_within(900), testing::ElementsAre(1, 2, 3));
  EXPECT_THAT(stages_within(638), testing::ElementsAre(2, 3));
  EXPECT_THAT(stages_within(375), testing::ElementsAre(3));
  EXPECT_THAT(stages_within(374), testing::IsEmpty());
  SearchSpace whole = kSpace;
  whole.sharded = false;
  job.memory_bytes.reset();
  for (const Candidate& candidate : search(job, eight(100), whole)->best) EXPECT_EQ(candidate.way.plan.stage, 0);
}

TEST(Search, KnowsWhatAStepTakesAtTheLeast) {
  const auto least = [](const Way& way, int workers_per_host) {
    Network network = eight(100);
    network.workers_per_host = workers_per_host;
    return least_step(one_tensor_job(), network, way);
  };
  const Way ring{.plan = {.exchange = Exchange::kRing}};
  EXPECT_DOUBLE_EQ(least(ring, 1), 7);  // 2 x 7/8 x 4 s
  EXPECT_DOUBLE_EQ(least(ring, 2), 6);  // each host has to send and get as much as one of four ranks
  EXPECT_DOUBLE_EQ(least(ring, 8), 3);  // no link is used
  EXPECT_DOUBLE_EQ(least({.plan = {.exchange = Exchange::kServers, .servers = 4}}, 1), 8);
  EXPECT_DOUBLE_EQ(least({.plan = {.exchange = Exchange::kServers, .servers = 16}}, 1), 4) << "a worker's own link";
}

TEST(Search, FailsWhereAStepCannotBePredicted) {
  AdvisedJob job = one_tensor_job();
  job.compute = 0;
  EXPECT_FALSE(search(job, eight(100), kSpace).ok());
}

FormedWay pipeline(int stages, const std::string& schedule, double step, double bytes) {
  return {.way = {.pipeline = {.stages = stages, .microbatches = 8, .schedule = schedule}},
          .prediction = {.step = step},
          .least_step = step / 2,
          .host_bytes = bytes};
}

TEST(Search, PutsWaysWhoseFormsAreKnownElsewhereAmongTheOthers) {
  const SearchResult result =
      *search(one_tensor_job(), eight(100), kSpace,
              {pipeline(2, "1f1b", 6, 500), pipeline(4, "1f1b", 5, 300), pipeline(4, "zero-bubble", 4, 300)});
  ASSERT_EQ(result.best.size(), 12u);
  EXPECT_EQ(result.best[0].way.pipeline.schedule, "zero-bubble");
  EXPECT_EQ(result.best[0].way.family(), Family::kPipelines);
  EXPECT_DOUBLE_EQ(result.best[0].score, 4.0 / 8);
  EXPECT_DOUBLE_EQ(result.best[0].least, 2.0 / 8);
  EXPECT_DOUBLE_EQ(result.best[0].host_bytes, 300);
  EXPECT_EQ(result.best[1].way.pipeline.stages, 4) << "the better of one schedule";
  EXPECT_EQ(result.others[0].way.pipeline.stages, 2);
}

TEST(Search, LeavesOutPipelinesThatDoNotFit) {
  AdvisedJob job = one_tensor_job();
  job.memory_bytes = 40;
  const SearchResult none = *search(job, eight(100), kSpace, {pipeline(2, "1f1b", 6, 500), pipeline(4, "1f1b", 5, 41)});
  EXPECT_TRUE(none.best.empty());
  EXPECT_EQ(none.too_large.back().way.family(), Family::kPipelines);
  EXPECT_DOUBLE_EQ(none.too_large.back().bytes, 41) << "the smallest need of the kind";
  job.memory_bytes = 41;
  const SearchResult one = *search(job, eight(100), kSpace, {pipeline(2, "1f1b", 6, 500), pipeline(4, "1f1b", 5, 41)});
  ASSERT_EQ(one.best.size(), 1u);
  EXPECT_EQ(one.best[0].way.pipeline.stages, 4);
}

}  // namespace
}  // namespace syncopate::prediction
