#include "experiments/lab/run/run_prediction.h"

#include <gtest/gtest.h>

#include "tests/support/resolved.h"

namespace syncopate::experiments {
namespace {

using prediction::Exchange;

RunRequest simulated(Mode mode) {
  RunRequest request;
  request.cluster = ClusterKind::kSimulated;
  request.mode = mode;
  request.workers = 8;
  request.model = "mlp:784-32-10";
  request.shape = *LinkShape::parse("100mbit+1ms");
  request.compute = ComputeModel{.step = std::chrono::milliseconds(10), .flops_per_second = {}, .profile = {}};
  return request;
}

TEST(FormOfARun, TakesItsLinksServersAndSchedule) {
  RunRequest request = simulated(Mode::kAllreduce);
  request.collective = CollectiveKind::kBinomialTree;
  const std::optional<FormOfRun> tree = form_of(resolved(request));
  ASSERT_TRUE(tree);
  EXPECT_EQ(tree->plan.exchange, Exchange::kTree);
  EXPECT_EQ(tree->network.workers, 8);
  EXPECT_DOUBLE_EQ(tree->network.alpha, 1e-3);
  EXPECT_DOUBLE_EQ(tree->network.bytes_per_second, request.shape->payload_bytes_per_second());

  request = simulated(Mode::kPs);
  request.servers = 3;
  const std::optional<FormOfRun> async = form_of(resolved(request));
  ASSERT_TRUE(async);
  EXPECT_EQ(async->plan.exchange, Exchange::kServers);
  EXPECT_EQ(async->plan.servers, 3);
  EXPECT_TRUE(async->is_asynchronous);
}

TEST(FormOfARun, KnowsServersOnTheWorkersHostsFromThoseOnTheirOwn) {
  RunRequest request = simulated(Mode::kPs);
  request.servers = 8;
  request.hosts = *parse_hosts("8x1");
  const std::optional<FormOfRun> colocated = form_of(resolved(request));
  ASSERT_TRUE(colocated);
  EXPECT_TRUE(colocated->plan.colocated);
  EXPECT_EQ(colocated->network.workers_per_host, 1);
  request.servers = 2;
  request.hosts = *parse_hosts("s0:0,s1:0,a:4,b:4");
  const std::optional<FormOfRun> apart = form_of(resolved(request));
  ASSERT_TRUE(apart);
  EXPECT_FALSE(apart->plan.colocated);
  EXPECT_EQ(apart->network.workers_per_host, 4);
  EXPECT_FALSE(apart->plan.aggregated);
  request.consistency = *ps::Consistency::parse("sync");
  request.aggregation = Aggregation::kHost;
  EXPECT_TRUE(form_of(resolved(request))->plan.aggregated);
  request.aggregation = Aggregation::kOff;
  request.servers = 3;  // two on hosts of their own, one beside workers
  EXPECT_FALSE(form_of(resolved(request)));
  request.servers = 9;
  request.hosts = *parse_hosts("8x1");
  EXPECT_FALSE(form_of(resolved(request)));
}

TEST(FormOfARun, KnowsServersInTheWorkersProcesses) {
  RunRequest request = simulated(Mode::kPs);
  request.colocated = true;
  for (const ClusterKind cluster : {ClusterKind::kSimulated, ClusterKind::kNamespaces, ClusterKind::kReal}) {
    request.cluster = cluster;
    if (cluster != ClusterKind::kSimulated) request.compute.reset();
    const std::optional<FormOfRun> form = form_of(resolved(request));
    ASSERT_TRUE(form);
    EXPECT_TRUE(form->plan.colocated);
    EXPECT_EQ(form->plan.servers, 8);
    EXPECT_EQ(form->network.workers_per_host, 1);
  }
  request = simulated(Mode::kPs);
  request.colocated = true;
  request.workers = 3;
  request.hosts = *parse_hosts("4x2");
  EXPECT_FALSE(form_of(resolved(request))) << "one host has two servers, and one has one";
  request.hosts = *parse_hosts("a:1,b:1,c:1,d:0");
  EXPECT_TRUE(form_of(resolved(request)).value().plan.colocated);
}

TEST(FormOfARun, KnowsSpareServersBesideThoseOfWorkers) {
  RunRequest request = simulated(Mode::kPs);
  request.colocated = true;
  request.spare_servers = 3;
  const std::optional<FormOfRun> form = form_of(resolved(request));
  ASSERT_TRUE(form);
  EXPECT_TRUE(form->plan.colocated);
  EXPECT_EQ(form->plan.servers, 8);
  EXPECT_EQ(form->plan.spare_servers, 3);
  request.workers = 3;
  request.spare_servers = 1;
  request.hosts = *parse_hosts("a,b,d:0,c");
  EXPECT_EQ(form_of(resolved(request)).value().plan.spare_servers, 1);
  request.sharding = ps::ShardingPolicy::kWhole;
  EXPECT_FALSE(form_of(resolved(request))) << "whole tensors do not keep to the split";
}

TEST(FormOfARun, IsNoneWhereNoFormDescribesTheRun) {
  const auto has_form = [](const RunRequest& request) { return form_of(resolved(request)).has_value(); };
  RunRequest request = simulated(Mode::kAllreduce);
  EXPECT_TRUE(has_form(request));
  request.cluster = ClusterKind::kReal;
  request.compute.reset();
  EXPECT_TRUE(has_form(request));
  request.shape.reset();
  EXPECT_FALSE(has_form(request)) << "links are not known";
  RunRequest own_program;
  own_program.mode = Mode::kPs;
  own_program.workers = 2;
  own_program.shape = LinkShape{.bits_per_second = 1000000};
  EXPECT_TRUE(has_form(own_program));
  own_program.command = {"python", "train.py"};
  EXPECT_FALSE(has_form(own_program)) << "its model is not known";
  request = simulated(Mode::kAllreduce);
  request.stragglers = *worker::Stragglers::parse("1:4x");
  EXPECT_FALSE(has_form(request));
  request = simulated(Mode::kAllreduce);
  request.sync_every = 4;
  EXPECT_FALSE(has_form(request));
  request = simulated(Mode::kAllreduce);
  request.fabric = *FabricChoice::parse("racks:2");
  EXPECT_FALSE(has_form(request));
  request = simulated(Mode::kPs);
  request.consistency = *ps::Consistency::parse("bounded:2");
  EXPECT_FALSE(has_form(request));
  request = simulated(Mode::kLocal);
  request.workers = 1;
  EXPECT_FALSE(has_form(request));
}

// 25,450 parameters: 2 · 7/8 of their bytes in each direction, and 14 messages one after the other.
TEST(PredictedRate, OfARingWithoutOverlapIsItsFormula) {
  RunRequest request = simulated(Mode::kAllreduce);
  request.collective = CollectiveKind::kRing;
  request.overlap = false;
  request.bucket_bytes = 1 << 20;
  const ResolvedRun run = resolved(request);
  const double bytes = 25'450 * 4.0;
  const double step = 0.010 + 14 * 1e-3 + 1.75 * bytes / run.shape->payload_bytes_per_second();
  EXPECT_NEAR(*predicted_rate(run, 0.010), 8 * run.batch_size / step, 0.005 * 8 * run.batch_size / step);
}

// 2 (n - 1) M / (n B) of Jiang et al. 2020, where nothing is computed meanwhile.
TEST(PredictedRate, OfColocatedServersIsItsFormula) {
  for (const int workers : {2, 4, 8}) {
    RunRequest request = simulated(Mode::kPs);
    request.consistency = *ps::Consistency::parse("sync");
    request.colocated = true;
    request.workers = workers;
    request.shape = *LinkShape::parse("10mbit");
    const ResolvedRun run = resolved(request);
    const double step = 2.0 * (workers - 1) / workers * 25'450 * 4.0 / run.shape->payload_bytes_per_second();
    EXPECT_NEAR(*predicted_rate(run, 1e-6), workers * run.batch_size / step, 0.005 * workers * run.batch_size / step);
  }
}

// 2n(n - 1) M / ((n^2 + K(n - 2)) B) of Jiang et al. 2020.
TEST(PredictedRate, OfSpareServersBesideColocatedOnesIsItsFormula) {
  for (const int n : {2, 4, 8}) {
    for (const int spare : {1, n - 1}) {
      RunRequest request = simulated(Mode::kPs);
      request.consistency = *ps::Consistency::parse("sync");
      request.colocated = true;
      request.spare_servers = spare;
      request.workers = n;
      request.shape = *LinkShape::parse("10mbit");
      const ResolvedRun run = resolved(request);
      const double bytes = 2.0 * n * (n - 1) / (n * n + spare * (n - 2)) * 25'450 * 4.0;
      const double rate = n * run.batch_size / bytes * run.shape->payload_bytes_per_second();
      EXPECT_NEAR(*predicted_rate(run, 1e-6), rate, 0.005 * rate) << n << " " << spare;
    }
  }
}

// As long as the ring; with overlap, where all its gradients come at the end, the gathering of weights is hidden.
TEST(PredictedRate, OfAShardedStateIsThatOfARingWhoseSecondHalfIsBesideForward) {
  RunRequest request = simulated(Mode::kAllreduce);
  request.collective = CollectiveKind::kRing;
  request.overlap = false;
  const double whole = *predicted_rate(resolved(request), 0.010);
  request.mode = Mode::kSharded;
  EXPECT_DOUBLE_EQ(*predicted_rate(resolved(request), 0.010), whole);
  request.overlap = true;
  request.bucket_bytes = 1 << 20;
  request.compute->step = std::chrono::milliseconds(200);
  const double sharded = *predicted_rate(resolved(request), 0.200);
  request.mode = Mode::kAllreduce;
  EXPECT_GT(sharded, *predicted_rate(resolved(request), 0.200));
}

// 2 hosts of 4: one half of the bytes in each of 2 messages.
TEST(PredictedRate, OfTwoLevelsIsThatOfARingOfHosts) {
  RunRequest request = simulated(Mode::kAllreduce);
  request.collective = CollectiveKind::kHierarchical;
  request.overlap = false;
  request.bucket_bytes = 1 << 20;
  EXPECT_FALSE(form_of(resolved(request)).has_value()) << "no host has several workers";
  request.hosts = *parse_hosts("2x4");
  const ResolvedRun run = resolved(request);
  const double bytes = 25'450 * 4.0;
  const double step = 0.010 + 2 * 1e-3 + bytes / run.shape->payload_bytes_per_second();
  EXPECT_NEAR(*predicted_rate(run, 0.010), 8 * run.batch_size / step, 0.005 * 8 * run.batch_size / step);
}

TEST(PredictedRate, TakesTheFastestFormWhereTheSizeDecides) {
  RunRequest request = simulated(Mode::kAllreduce);
  request.collective = CollectiveKind::kBySize;
  const double by_size = *predicted_rate(resolved(request), 0.010);
  request.collective = CollectiveKind::kRing;
  EXPECT_GT(by_size, *predicted_rate(resolved(request), 0.010)) << "a tree has 6 messages one after the other";
  request.hosts = *parse_hosts("2x3");
  request.workers = 6;
  request.collective = CollectiveKind::kHierarchical;
  const double on_two_levels = *predicted_rate(resolved(request), 0.010);
  request.collective = CollectiveKind::kBySize;
  EXPECT_GE(*predicted_rate(resolved(request), 0.010), on_two_levels);
}

}  // namespace
}  // namespace syncopate::experiments
