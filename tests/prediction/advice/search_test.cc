#include "prediction/advice/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "prediction/advice/contest.h"

namespace syncopate::prediction {
namespace {

// One tensor of 400 bytes: nothing overlaps but what no form can hide.
AdvisedJob one_tensor_job() {
  AdvisedJob job{.profile = {.model = "toy"}, .compute = 3};
  job.profile.tensors.push_back({.name = "all", .shape = {100}, .parameters = 100, .forward_flops = 1});
  return job;
}

const SearchSpace kSpace{.servers = {1, 2, 4}, .shardings = {Sharding::kEven}, .bucket_bytes = {0}};

Network eight(double bytes_per_second) { return {.bytes_per_second = bytes_per_second, .workers = 8}; }

TEST(Search, KeepsTheBestOfEachKindInOrder) {
  const Result<SearchResult> result = search(one_tensor_job(), eight(100), kSpace);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->best.size(), 7u);  // three of allreduce, and servers here and there, synchronous or not
  for (std::size_t i = 1; i < result->best.size(); ++i) EXPECT_LE(result->best[i - 1].score, result->best[i].score);
  // A ring takes 2 x 7/8 x 4 s behind the backward pass.
  ASSERT_NE(result->allreduce(), nullptr);
  EXPECT_DOUBLE_EQ(result->allreduce()->prediction.step, 3 + 7);
  // A server on each of 8 hosts takes as long; more of the servers elsewhere that were asked for come to 2 x 8/4 x 4 s.
  ASSERT_NE(result->servers(), nullptr);
  EXPECT_TRUE(result->servers()->way.plan.colocated);
  EXPECT_EQ(result->servers()->way.plan.servers, 8);
  EXPECT_DOUBLE_EQ(result->servers()->prediction.step, 3 + 7);
  const auto separate = std::ranges::find_if(result->best, [](const Candidate& candidate) {
    return candidate.way.plan.exchange == Exchange::kServers && !candidate.way.plan.colocated &&
           !candidate.way.asynchronous;
  });
  ASSERT_NE(separate, result->best.end());
  EXPECT_EQ(separate->way.plan.servers, 4);
  EXPECT_DOUBLE_EQ(separate->prediction.step, 3 + 16);
}

TEST(Search, WeighsHostsByTheirPriceWhereTheCheapestIsWanted) {
  AdvisedJob job = one_tensor_job();
  job.goal = Goal::kCheapest;
  job.prices = {.worker = 1, .server = 100};
  SearchSpace separate = kSpace;
  separate.colocated = false;
  const SearchResult result = *search(job, eight(100), separate);
  // 1 server: 3 + 64 s of 108 an hour; 2: 3 + 32 s of 208; 4: 3 + 16 s of 408.
  ASSERT_NE(result.servers(), nullptr);
  EXPECT_EQ(result.servers()->way.plan.servers, 1);
  EXPECT_DOUBLE_EQ(result.servers()->score, 67.0 / 8 * 108);
}

TEST(Search, LeavesOutWhatDoesNotFitAndSaysWhatItNeeds) {
  AdvisedJob job = one_tensor_job();
  job.state_floats = 2;
  job.memory_bytes = 1000;  // weights and gradients are 800 bytes, Adam's state as much
  const SearchResult result = *search(job, eight(100), kSpace);
  EXPECT_EQ(result.allreduce(), nullptr);
  ASSERT_NE(result.servers(), nullptr);
  ASSERT_GE(result.too_large.size(), 3u);
  EXPECT_EQ(result.too_large.front().way.plan.exchange, Exchange::kRing);
  EXPECT_DOUBLE_EQ(result.too_large.front().bytes, 1600);
}

TEST(Search, FailsWhereAStepCannotBePredicted) {
  AdvisedJob job = one_tensor_job();
  job.compute = 0;
  EXPECT_FALSE(search(job, eight(100), kSpace).ok());
}

TEST(Contest, SolvesForTheServersThatAllreduceTakes) {
  const AdvisedJob job = one_tensor_job();
  const auto space_of = [](int) { return kSpace; };
  // 8 workers: allreduce exposes 7 s, K servers 2 x 32/K s, so 10 of them take less (6.4 s) and 9 more (7.1 s); beyond
  // 8 a worker's own link takes 8 s at the least. So allreduce leads throughout.
  const Contest contest(job, eight(100), space_of, {});
  const std::vector<Stretch> servers = contest.over_servers(32);
  ASSERT_EQ(servers.size(), 1u);
  EXPECT_EQ(servers.front().lead, Lead::kFirst);
}

TEST(Contest, SolvesForTheLinkAtWhichMessagesCostAsMuchAsBytes) {
  // 8 workers, 4 separate servers, no others. A message costs 1 s. Halving-doubling: 6 s + 700/B; servers: pull and
  // push, 2 x (1 s + 800/B). They cross at 900/B = 4 s.
  const AdvisedJob job = one_tensor_job();
  Network network = eight(100);
  network.alpha = 1;
  const auto space_of = [](int) {
    SearchSpace space = kSpace;
    space.servers = {4};
    space.colocated = false;
    return space;
  };
  const std::vector<Stretch> links = Contest(job, network, space_of, {}).over_links(1, 1e6);
  ASSERT_EQ(links.size(), 2u);
  EXPECT_EQ(links[0].lead, Lead::kFirst);
  EXPECT_NEAR(links[0].to, 225, 0.01);
  EXPECT_EQ(links[1].lead, Lead::kSecond);
  // Errors make a stretch between them of which nothing can be said.
  const std::vector<Stretch> unsure = Contest(job, network, space_of, {0.1, 0.1}).over_links(1, 1e6);
  ASSERT_GE(unsure.size(), 3u);
  EXPECT_EQ(unsure[1].lead, Lead::kNeither);
  EXPECT_LT(unsure[1].from, 225);
  EXPECT_GT(unsure[1].to, 225);
}

TEST(Contest, SolvesForTheWorkersAtWhichMessagesOfAllreduceAreTooMany) {
  // So many servers that a worker's own link decides: 2 x (0.9 s + 4 s). Halving-doubling among 4 takes 2 x 2 x 0.9 s +
  // 6 s, which is less by 0.2 s; a ring of 5 takes 8 x 0.9 s + 6.4 s.
  const AdvisedJob job = one_tensor_job();
  Network network = eight(100);
  network.alpha = 0.9;
  const auto space_of = [](int) {
    SearchSpace space = kSpace;
    space.servers = {1000};
    space.colocated = false;
    return space;
  };
  const std::vector<Stretch> workers = Contest(job, network, space_of, {}).over_workers(64);
  ASSERT_EQ(workers.size(), 2u);
  EXPECT_EQ(workers[0].lead, Lead::kFirst);
  EXPECT_EQ(workers[0].to, 4);
  EXPECT_EQ(workers[1].from, 5);
  EXPECT_EQ(workers[1].to, 64);
}

}  // namespace
}  // namespace syncopate::prediction
