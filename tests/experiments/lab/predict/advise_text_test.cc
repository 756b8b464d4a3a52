#include "experiments/lab/predict/advise_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiments/lab/predict/advice.h"
#include "experiments/lab/predict/prediction_line.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

std::string advised(const std::vector<std::string>& words, const std::string& search_events = "1000000000") {
  using testing_support::operator+;
  Interrupts interrupts;
  SoloTimes solo;
  const JobRunner run = [&](const ResolvedRun& config) {
    Console quiet(true);
    return run_job(config, Survey(), solo, interrupts, quiet);
  };
  const Result<std::string> text =
      prediction_text(std::vector<std::string>{"advise", "--search-events=" + search_events} + words, run);
  EXPECT_TRUE(text.ok()) << text.status().message();
  return text.ok() ? *text : "";
}

TEST(AdviseText, ClaimsNoDifferenceWhereBothModesHideTheirExchange) {
  const std::string text =
      advised({"--model=resnet50", "--workers=4", "--batch-size=64", "--step-time=2s", "--shape=100gbit"});
  EXPECT_THAT(text,
              AllOf(HasSubstr("\n4 workers\nthe best of each kind"), HasSubstr("- Fastest among synchronous ways"),
                    HasSubstr("a difference below 1.0 %, which is none."), HasSubstr("- Asynchronous workers reach"),
                    HasSubstr(" updates old in the mean"), HasSubstr("How sure: "), Not(HasSubstr("cost"))));
}

// A whole variable of VGG16 of 411 MB keeps one server busy.
TEST(AdviseText, ClaimsTheDifferenceThatTheRunsHave) {
  const std::string text = advised({"--profile=vgg16", "--workers=4", "--batch-size=64", "--step-time=0.416",
                                    "--shape=25gbit", "--sharding=whole", "--servers=4", "--bucket-sizes=25MB"});
  EXPECT_THAT(text, AllOf(HasSubstr("Fastest among synchronous ways: "), HasSubstr(" % more."),
                          HasSubstr("  1. ./run_experiment --cluster=simulated --model=profile:vgg16 --workers=4 ")));
  EXPECT_LT(text.find("allreduce, buckets"), text.find(". servers: 4"));
}

TEST(AdviseText, SaysWhatDoesNotFit) {
  const std::string text = advised({"--profile=resnet50", "--workers=4", "--batch-size=4", "--step-time=2",
                                    "--shape=10gbit", "--memory=300MB", "--servers=8"});
  EXPECT_THAT(text, AllOf(HasSubstr("- Nothing of allreduce fits into memory.\n"),
                          HasSubstr("- Left out for the 300MB of a worker's host"), HasSubstr("adam's state"),
                          HasSubstr("- Does not fit: ring allreduce, which needs 408.95 MB at the least.\n")));
  EXPECT_THAT(advised({"--profile=resnet50", "--workers=4", "--batch-size=4", "--step-time=2", "--shape=10gbit",
                       "--memory=100MB", "--servers=8"}),
              AllOf(HasSubstr("- No synchronous way fits into memory.\n"), Not(HasSubstr("the best of each")),
                    HasSubstr("- Does not fit: servers: 8, even shards, "),
                    HasSubstr("- Does not fit: asynchronous: servers: 8, even shards, ")))
      << "each way once";
}

// 12 bytes of state and gradients for each of 25.6 million parameters, and 4 of weights, are divided among 4 workers.
TEST(AdviseText, FindsTheShardsThatFitWhereAnAllreduceDoesNot) {
  const std::string text = advised({"--profile=resnet50", "--workers=4", "--batch-size=4", "--step-time=2",
                                    "--shape=10gbit", "--memory=150MB", "--servers=8"});
  EXPECT_THAT(text, AllOf(HasSubstr("- Fastest among synchronous ways: sharded, stage 3, buckets of "),
                          HasSubstr("116.39 MB"), HasSubstr("--mode=sharded --stage=3 --collective=ring"),
                          HasSubstr("- Nothing of allreduce fits into memory.\n- Nothing of servers fits into memory."),
                          HasSubstr("sharded, stage 2, which needs 185.99 MB at the least.")));
}

const std::vector<std::string> kJobWithLayers = {"--model=mlp:784-128-128-128-10",
                                                 "--workers=4",
                                                 "--batch-size=8",
                                                 "--step-time=20ms",
                                                 "--shape=1gbit+20us",
                                                 "--servers=4",
                                                 "--bucket-sizes=1MB"};

TEST(AdviseText, HasPipelinesOfAModelWhoseLayersAreKnown) {
  const std::string text = advised(kJobWithLayers);
  EXPECT_THAT(text, AllOf(HasSubstr("pipeline of 2 stages, zero-bubble, "), HasSubstr(" The best of pipelines: "),
                          HasSubstr("--model=mlp:784-128-128-128-10 --optimizer=adam --train-samples=128 "),
                          HasSubstr(" --mode=allreduce --pipeline=2 --microbatches="),
                          HasSubstr("\nNot searched: stages whose layers are in parts, "), Not(HasSubstr("profile"))));
}

TEST(AdviseText, SaysThatPipelinesOfAProfileAreNotSearched) {
  const std::string text = advised({"--model=resnet50", "--workers=2", "--batch-size=64", "--step-time=2s",
                                    "--shape=100gbit", "--servers=1", "--bucket-sizes=25MB"});
  EXPECT_THAT(text, AllOf(HasSubstr("\nNot searched: pipelines and parts of layers, since a profile knows no "
                                    "activations"),
                          Not(HasSubstr("--pipeline="))));
}

// Where the optimizer needs whole tensors, no ring divides its state. Of 2.36 million parameters a stage of four has a
// quarter, of 20 bytes each; where servers elsewhere have the state, a worker has 8 bytes of all.
TEST(AdviseText, NamesDividedModelsThatAloneFit) {
  const std::string text =
      advised({"--model=mlp:768-768-768-768-768", "--dataset=patterns", "--image-size=16", "--classes=768",
               "--workers=4", "--batch-size=8", "--step-time=20ms", "--shape=1gbit+20us", "--servers=4",
               "--bucket-sizes=1MB", "--optimizer=lamb", "--memory=15MB"});
  EXPECT_THAT(
      text,
      AllOf(HasSubstr("- Of synchronous ways, those alone fit into memory that divide the model among workers.\n"),
            HasSubstr("- Fastest among synchronous ways: pipeline of "),
            HasSubstr("ring allreduce, which needs 37.80 MB at the least.")));
}

TEST(AdviseText, LeavesSharesOutWhereTheOptimizerNeedsWholeTensors) {
  const std::vector<std::string> job = {"--profile=resnet50", "--workers=4", "--batch-size=4",     "--step-time=2",
                                        "--shape=10gbit",     "--servers=4", "--bucket-sizes=25MB"};
  using testing_support::operator+;
  EXPECT_THAT(advised(job), HasSubstr("The best of sharded: sharded, stage "));
  EXPECT_THAT(advised(job + std::vector<std::string>{"--optimizer=lamb"}), Not(HasSubstr("sharded")));
}

TEST(AdviseText, SaysOfEachWayWhyItWasRefusedWhereAllAre) {
  const std::string text = advised({"--model=resnet50", "--workers=2000", "--batch-size=8", "--step-time=2s",
                                    "--shape=10gbit", "--servers=8", "--bucket-sizes=25MB"});
  EXPECT_THAT(text, AllOf(HasSubstr("\n- No synchronous way ran; below stands why.\n"),
                          HasSubstr("\n- Not simulated: ring allreduce, buckets of 25 MB: --workers=2000: workers must "
                                    "be 1 to 1024.\n"),
                          Not(HasSubstr("Fastest"))));
}

TEST(AdviseText, ClaimsNothingOfWaysThatDidNotRun) {
  const std::string text =
      advised({"--model=resnet50", "--workers=4", "--batch-size=64", "--step-time=0.1", "--shape=10gbit"}, "1");
  EXPECT_THAT(text, AllOf(HasSubstr("- Fastest among the synchronous ways that ran: "),
                          HasSubstr("- Not simulated within --search-events=1: ")));
}

// Servers on hosts of their own need more hosts than were asked about.
TEST(AdviseText, SaysWhichHostsALeadNeedsAndWhatIsBestWithoutThem) {
  const std::vector<std::string> job = {"--model=resnet50",    "--workers=8", "--batch-size=64",    "--step-time=150ms",
                                        "--shape=10gbit+50us", "--servers=8", "--bucket-sizes=25MB"};
  const std::string text = advised(job);
  EXPECT_THAT(
      text,
      AllOf(HasSubstr("servers: 8, even shards, 163 ms a step with 8 hosts more."),
            HasSubstr(" Without hosts more, on the workers' 8, the best is sharded, stage 1, buckets of 25 MB."),
            ContainsRegex("servers: 8, even shards\n +16  "), ContainsRegex("ring allreduce, buckets of 25 MB\n +8  "),
            HasSubstr("ring allreduce, weights averaged every 8 steps\n"), Not(HasSubstr("Which mode is ahead"))));
  using testing_support::operator+;
  const std::string cheapest =
      advised(job + std::vector<std::string>{"--goal=cheapest", "--price-worker=3", "--price-server=2.9"});
  EXPECT_THAT(cheapest, AllOf(HasSubstr("- Cheapest among synchronous ways: sharded, stage 1"),
                              Not(HasSubstr("Without hosts more"))));
}

// The cheapest synchronous way is slower than the fastest.
TEST(AdviseText, HoldsAsynchronousWorkersAgainstTheFastestThatWait) {
  AdviseRequest request;
  request.goal = prediction::Goal::kCheapest;
  request.job.prices = prediction::HostPrices{.worker = 1, .server = 1};
  const auto servers = [](double rate, double score, bool asynchronous) {
    return SimulatedWay{
        .way = {.plan = {.exchange = prediction::Exchange::kServers, .servers = 4}, .asynchronous = asynchronous},
        .step = 1,
        .samples_per_second = rate,
        .score = score};
  };
  SimulatedSearch search;
  search.ways = {SimulatedWay{.way = {}, .step = 1, .samples_per_second = 100, .score = 1}, servers(200, 2, false),
                 servers(300, 3, true)};
  EXPECT_THAT(advice(request, 4, {}, search),
              testing::Contains(HasSubstr("1.50 times as many as the fastest synchronous way")));
}

// Whole variables leave one server's link with more than the others'.
TEST(AdviseText, SaysWhereTheLeadChanges) {
  const std::string text = advised({"--model=resnet18", "--workers=2,8", "--batch-size=32", "--step-time=20ms",
                                    "--shape=10gbit+20us", "--servers=1", "--bucket-sizes=25MB", "--sharding=whole"});
  EXPECT_THAT(text, HasSubstr("Which mode is ahead, its best synchronous way against the others', by workers: 2: "));
  EXPECT_THAT(text, ContainsRegex("; 8: sharded by [0-9.]+ %\\. Between 2 and 8 workers, at about [0-9.]+, allreduce "
                                  "overtakes servers\\."));
}

TEST(AdviseText, NamesAllModesThatLead) {
  const auto way = [](int stage, double score) {
    return SimulatedWay{.way = {.plan = {.stage = stage}}, .step = 1, .samples_per_second = 1, .score = score};
  };
  SimulatedWay servers = way(0, 1.1);
  servers.way.plan = {.exchange = prediction::Exchange::kServers, .servers = 4, .colocated = true};
  EXPECT_EQ(lead_in(4, {.ways = {way(0, 1), way(3, 1.005), servers}, .refused = {}}),
            "4: allreduce and sharded by 10.0 %");
  EXPECT_EQ(lead_in(4, {.ways = {way(2, 1), way(0, 1.2), servers}, .refused = {}}), "4: sharded by 10.0 %");
  EXPECT_EQ(lead_in(4, {.ways = {way(2, 1), way(0, 1.005)}, .refused = {}}), "4: none");
  EXPECT_EQ(lead_in(4, {.ways = {way(0, 1)}, .refused = {}}), "4: allreduce alone");
  EXPECT_EQ(lead_in(4, {}), "4: none fits");
}

TEST(AdviseText, HasCostsAndAnotherOrderWhereTheCheapestIsWanted) {
  const std::string text = advised({"--profile=resnet50", "--workers=1,4", "--batch-size=64", "--step-time=0.292",
                                    "--shape=10gbit", "--goal=cheapest", "--price-worker=3", "--price-server=2"});
  EXPECT_THAT(text, AllOf(HasSubstr("cost/million"), HasSubstr("- Cheapest among synchronous ways"),
                          HasSubstr(" for a million samples"),
                          HasSubstr("- One worker has nobody to agree with: there is nothing to choose.\n")));
}

}  // namespace
}  // namespace syncopate::experiments
