#include "experiments/lab/predict/simulated_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "common/random.h"
#include "experiments/config/resolution.h"
#include "experiments/lab/predict/prediction_line.h"

namespace syncopate::experiments {
namespace {

using prediction::Exchange;
using prediction::ExchangePlan;
using simulation::NetworkModel;
using testing::HasSubstr;

ScaledJob resnet_job(int workers_per_host = 1) {
  return {.profile_name = "resnet50",
          .profile = *prediction::built_in_profile("resnet50"),
          .workers = {4},
          .workers_per_host = workers_per_host,
          .batch_size = 64,
          .step_seconds = 0.1,
          .link = *LinkShape::parse("25gbit+50us"),
          .prices = {}};
}

const ExchangePlan kRing{.exchange = Exchange::kRing, .bucket_bytes = 25e6};
const ExchangePlan kServers{.exchange = Exchange::kServers, .servers = 2, .sharding = prediction::Sharding::kWhole};

TEST(ARunLikeAPlan, HasItsModeSizesAndLink) {
  const std::optional<RunRequest> ring = run_like(resnet_job(), 4, kRing, NetworkModel::kFifo);
  ASSERT_TRUE(ring);
  EXPECT_TRUE(check(*ring).ok()) << check(*ring).message();
  EXPECT_EQ(ring->mode, Mode::kAllreduce);
  EXPECT_EQ(ring->collective, CollectiveKind::kRing);
  EXPECT_EQ(ring->bucket_bytes, 25'000'000);
  EXPECT_EQ(ring->workers, 4);
  EXPECT_EQ(ring->shape->to_string(), "25gbit+50us");
  EXPECT_EQ(ring->compute->step, std::chrono::milliseconds(100));
  const std::optional<RunRequest> servers = run_like(resnet_job(), 4, kServers, NetworkModel::kFrames);
  ASSERT_TRUE(servers);
  EXPECT_TRUE(check(*servers).ok()) << check(*servers).message();
  EXPECT_EQ(servers->servers, 2);
  EXPECT_EQ(servers->sharding, ps::ShardingPolicy::kWhole);
  EXPECT_EQ(servers->network, NetworkModel::kFrames);
}

TEST(ARunLikeAPlan, HasHostsWhereWorkersShareThem) {
  const std::optional<RunRequest> ring = run_like(resnet_job(2), 4, kRing, NetworkModel::kFifo);
  ASSERT_TRUE(ring);
  EXPECT_EQ(ring->hosts.size(), 2u);
  EXPECT_EQ(ring->hosts.front().slots, 2);
  ExchangePlan colocated = kServers;
  colocated.colocated = true;
  EXPECT_EQ(run_like(resnet_job(), 4, colocated, NetworkModel::kFifo)->hosts.size(), 4u);
}

TEST(ARunLikeAPlan, HasSpareServersForBytepsOptimum) {
  const auto like = [](const ScaledJob& job, int workers, int servers) {
    const std::optional<RunRequest> run =
        run_like(job, workers, {.exchange = Exchange::kByteps, .servers = servers}, NetworkModel::kFrames);
    EXPECT_TRUE(run && check(*run).ok()) << (run ? check(*run).message() : "none");
    return run.value_or(RunRequest());
  };
  const RunRequest one = like(resnet_job(), 4, 1);
  EXPECT_TRUE(one.colocated);
  EXPECT_EQ(one.spare_servers, 1);
  EXPECT_EQ(one.hosts.size(), 5u);
  const RunRequest hosts = like(resnet_job(2), 8, 2);
  EXPECT_EQ(hosts.spare_servers, 2);
  EXPECT_EQ(hosts.aggregation, Aggregation::kHost);
  const RunRequest none = like(resnet_job(), 4, 0);
  EXPECT_FALSE(none.colocated);
  EXPECT_EQ(none.servers, 4);
  EXPECT_EQ(none.hosts.size(), 4u);
  const RunRequest all = like(resnet_job(), 4, 5);
  EXPECT_FALSE(all.colocated);
  EXPECT_EQ(all.servers, 5);
  EXPECT_TRUE(all.hosts.empty());
}

TEST(ARunLikeAPlan, IsNotThereWhereNothingIsLikeIt) {
  const auto there = [](const ScaledJob& job, int workers, const ExchangePlan& plan) {
    return run_like(job, workers, plan, NetworkModel::kFifo).has_value();
  };
  EXPECT_FALSE(there(resnet_job(), 1, kRing)) << "one worker exchanges nothing";
  EXPECT_FALSE(there(resnet_job(), kMostWorkersBesideAPrediction + 1, kRing));
  EXPECT_FALSE(there(resnet_job(4), 4, {.exchange = Exchange::kByteps, .servers = 1})) << "one host needs no time";
  EXPECT_FALSE(there(resnet_job(2), 4, {.exchange = Exchange::kByteps, .servers = 2}));
  EXPECT_FALSE(there(resnet_job(2), 4, kServers)) << "servers stand on the workers' hosts, where these have several";
  EXPECT_FALSE(there(resnet_job(2), 5, kRing));
}

TEST(ARunLikeAPlan, TakesAsLongOnTwoLevelsAsTheFormSays) {
  Interrupts interrupts;
  SoloTimes solo;
  const JobRunner run = [&](const ResolvedRun& config) {
    Console quiet(true);
    return run_job(config, Survey(), solo, interrupts, quiet);
  };
  const ExchangePlan two_levels{.exchange = prediction::Exchange::kHierarchical, .bucket_bytes = 25e6};
  for (const int workers_per_host : {2, 4}) {
    const ScaledJob job = resnet_job(workers_per_host);
    const Result<double> step = simulated_step(*run_like(job, 8, two_levels, NetworkModel::kFluid), run);
    ASSERT_TRUE(step.ok()) << step.status().message();
    const auto form = predict_step(job.profile, job.step_seconds, job.network(8), two_levels);
    ASSERT_TRUE(form.ok());
    EXPECT_NEAR(*step / form->step, 1, 0.05) << workers_per_host << " workers a host";
  }
}

// Forms are of this project's own strategies: what they say is what its steps take, whatever is the bottleneck.
TEST(ARunLikeAPlan, TakesAsLongAsTheFormOfServersAndRingsSaysInDrawnSettings) {
  constexpr int kSettings = 16;
  constexpr double kWorst = 0.06;
  Interrupts interrupts;
  SoloTimes solo;
  const JobRunner run = [&](const ResolvedRun& config) {
    Console quiet(true);
    return run_job(config, Survey(), solo, interrupts, quiet);
  };
  Random random(7);
  const char* const models[] = {"resnet50", "vgg16", "inception3", "bert-base-128"};
  const char* const links[] = {"1gbit+50us", "5gbit+50us", "10gbit+20us", "25gbit+50us", "40gbit+10us"};
  for (int i = 0; i < kSettings; ++i) {
    ScaledJob job = resnet_job();
    job.profile_name = models[random.below(std::size(models))];
    job.profile = *prediction::built_in_profile(job.profile_name);
    job.step_seconds = random.uniform(0.05, 0.5);
    job.link = *LinkShape::parse(links[random.below(std::size(links))]);
    const int hosts = 2 + static_cast<int>(random.below(7)), servers = 1 + static_cast<int>(random.below(6));
    for (const ExchangePlan& plan :
         {kRing, ExchangePlan{.exchange = Exchange::kServers, .servers = servers},
          ExchangePlan{.exchange = Exchange::kServers, .servers = hosts, .colocated = true},
          ExchangePlan{.exchange = Exchange::kServers, .servers = hosts, .colocated = true, .aggregated = true}}) {
      job.workers_per_host = plan.aggregated ? 4 : 1;
      const int workers = hosts * job.workers_per_host;
      const Result<double> step = simulated_step(*run_like(job, workers, plan, NetworkModel::kFrames), run);
      ASSERT_TRUE(step.ok()) << step.status().message();
      const auto form = predict_step(job.profile, job.step_seconds, job.network(workers), plan);
      ASSERT_TRUE(form.ok());
      EXPECT_NEAR(form->step / *step, 1, kWorst)
          << job.profile_name << ", " << job.step_seconds << " s, " << job.link.to_string() << ", " << workers
          << " workers, " << plan.servers << " servers" << (plan.colocated ? " on their hosts" : "");
    }
  }
}

// The ring's form is exact but for what overlaps.
TEST(SimulatedStep, SaysThatNothingIsKeptWhereItIsInterrupted) {
  const JobRunner run = [](const ResolvedRun&) {
    return JobResult{.exit = ExitCode::kInterrupted, .verdict = "interrupted at step 1; what was recorded is kept"};
  };
  const Status status = simulated_step(*run_like(resnet_job(), 4, kRing, NetworkModel::kFifo), run).status();
  EXPECT_EQ(status.code(), Code::kCancelled);
  EXPECT_THAT(status.message(), testing::AllOf(HasSubstr("not kept"), testing::Not(HasSubstr("is kept"))));
}

TEST(PredictText, PutsTheSimulatedStepBesideTheForm) {
  Interrupts interrupts;
  SoloTimes solo;
  std::vector<std::string> folders;
  const JobRunner run = [&](const ResolvedRun& config) {
    folders.push_back(config.output);
    Console quiet(true);
    return run_job(config, Survey(), solo, interrupts, quiet);
  };
  const Result<double> step = simulated_step(*run_like(resnet_job(), 4, kRing, NetworkModel::kFifo), run);
  ASSERT_TRUE(step.ok()) << step.status().message();
  const auto form = predict_step(resnet_job().profile, 0.1, resnet_job().network(4), kRing);
  ASSERT_TRUE(form.ok());
  EXPECT_NEAR(*step / form->step, 1, 0.05);
  const Result<std::string> text = prediction_text({"predict", "--profile=resnet50", "--workers=2", "--batch-size=64",
                                                    "--step-time=0.1", "--shape=25gbit+50us", "--simulate=fifo"},
                                                   run);
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_THAT(*text, HasSubstr("network fifo"));
  for (const std::string& folder : folders) EXPECT_FALSE(std::filesystem::exists(folder)) << "it was nobody's";
}

}  // namespace
}  // namespace syncopate::experiments
