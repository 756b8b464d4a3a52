#include "experiments/lab/why/finished_pace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/resolved.h"

namespace syncopate::experiments {
namespace {

using testing::Contains;
using testing::Not;

std::set<std::string> refused_by_run(const RunRequest& request) {
  RunSummary summary;
  summary.reports.resize(1);
  return pace_of(resolved(request), summary, 0).refused;
}

TEST(FinishedPace, KnowsWhatTheRunWouldRefuse) {
  RunRequest allreduce;
  allreduce.mode = Mode::kAllreduce;
  allreduce.workers = 4;
  for (const char* taken : {"compress", "sync-every", "bucket-bytes", "batch-size", "shape"}) {
    EXPECT_THAT(refused_by_run(allreduce), Not(Contains(taken)));
  }
  for (const char* refused : {"consistency", "backup-workers", "sharding", "shards-per-server"}) {
    EXPECT_THAT(refused_by_run(allreduce), Contains(refused));
  }
  RunRequest ps;
  ps.mode = Mode::kPs;
  ps.workers = 4;
  ps.servers = 2;
  for (const char* taken : {"compress", "consistency", "shards-per-server", "batch-size"}) {
    EXPECT_THAT(refused_by_run(ps), Not(Contains(taken)));
  }
  EXPECT_THAT(refused_by_run(ps), Contains("bucket-bytes"));
  EXPECT_THAT(refused_by_run(ps), Contains("sharding")) << "it has that already";
}

TEST(FinishedPace, KnowsThatAProfileComputesNothingThatCouldBeCompressed) {
  RunRequest profile;
  profile.mode = Mode::kAllreduce;
  profile.workers = 4;
  profile.cluster = ClusterKind::kSimulated;
  profile.model = "profile:resnet50";
  profile.compute = *ComputeModel::parse("100ms");
  EXPECT_THAT(refused_by_run(profile), Contains("compress"));
  EXPECT_THAT(refused_by_run(profile), Not(Contains("bucket-bytes")));
}

}  // namespace
}  // namespace syncopate::experiments
