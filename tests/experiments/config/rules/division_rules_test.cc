#include "experiments/config/rules/division_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

#include "experiments/config/comparison.h"
#include "experiments/config/resolution.h"
#include "experiments/lab/report/mode_of.h"

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;

// What neither kind of division has, and a part of what is said.
const std::pair<std::function<void(RunRequest&)>, const char*> kRefusedByBoth[] = {
    {[](RunRequest& r) { r.collective = CollectiveKind::kBySize; }, "--collective=auto"},
    {[](RunRequest& r) {
       r.model = "ncf";
       r.dataset = "zipf-ratings";
     },
     "--model=ncf is no chain"},
    {[](RunRequest& r) { r.compress.kind = CodecKind::kFp16; }, "--compress=fp16"},
    {[](RunRequest& r) { r.elastic = true; }, "--elastic"},
    {[](RunRequest& r) { r.on_nan = OnNan::kSkip; }, "--on-nan=skip"},
    {[](RunRequest& r) { r.stragglers = *worker::Stragglers::parse("0:2x"); }, "--straggler"},
    {[](RunRequest& r) { r.sample_costs = *worker::SampleCosts::parse("zipf"); }, "--sample-cost"},
    {[](RunRequest& r) { r.bucket_bytes.reset(); }, "--bucket-bytes=auto"},
    {[](RunRequest& r) { r.shuffle = worker::Shuffle::kShard; }, "the same samples"},
    {[](RunRequest& r) { r.shard = DataShard::kLabels; }, "the same samples"},
    {[](RunRequest& r) { r.evaluate_every = *EvaluationInterval::parse("2s"); }, "--evaluate-every=2s"},
    {[](RunRequest& r) { r.launcher = LauncherKind::kMpirun; }, "mpirun"}};

RunRequest pipelined() {
  RunRequest request;
  request.mode = Mode::kAllreduce;
  request.workers = 4;
  request.pipeline = 2;
  return request;
}

std::string stage_refusal(const std::function<void(RunRequest&)>& change) {
  RunRequest request = pipelined();
  change(request);
  return check(request).message();
}

TEST(PipelineRules, AllowsWhatItHas) {
  EXPECT_EQ(stage_refusal([](RunRequest&) {}), "");
  EXPECT_EQ(stage_refusal([](RunRequest& r) { r.optimizer = OptimizerChoice::kLamb; }), "");
  EXPECT_EQ(stage_refusal([](RunRequest& r) { r.drop_last = false; }), "");
  EXPECT_EQ(stage_refusal([](RunRequest& r) { r.collective = CollectiveKind::kRing; }), "");
  EXPECT_EQ(stage_refusal([](RunRequest& r) { r.checkpoint_every = *CheckpointInterval::parse("10"); }), "");
}

TEST(PipelineRules, NamesWhatItHasNot) {
  const auto refuses = [](const std::function<void(RunRequest&)>& change, const std::string& why) {
    EXPECT_THAT(stage_refusal(change), testing::AllOf(testing::StartsWith("--pipeline="), HasSubstr(why)));
  };
  refuses([](RunRequest& r) { r.workers = 5; },
          "must divide the 5 workers, of which each stage has as many; use --workers=4");
  refuses([](RunRequest& r) { r.pipeline = 8; },
          "must divide the 4 workers, of which each stage has as many; use --workers=8");
  refuses([](RunRequest& r) { r.microbatches = 3; }, "its 2 workers train 128 samples together");
  refuses([](RunRequest& r) { r.collective = CollectiveKind::kHierarchical; }, "--collective=hierarchical");
  refuses(
      [](RunRequest& r) {
        r.pipeline = 4;
        r.pipeline_schedule = worker::PipelineSchedule::kInterleaved;
        r.microbatches = 2;
      },
      "groups of 4 microbatches through each chunk, into which --microbatches=2 are not cut; use --microbatches=4");
  for (const auto& [change, why] : kRefusedByBoth) refuses(change, why);
}

// With servers behind its stages.
TEST(PipelineRules, NamesWhatItHasNotAtServers) {
  const auto refusal = [](const std::function<void(RunRequest&)>& change) {
    return stage_refusal([&](RunRequest& r) {
      r.mode = Mode::kPs;
      change(r);
    });
  };
  const auto in_step = [](RunRequest& r) { r.consistency = *ps::Consistency::parse("sync"); };
  EXPECT_EQ(refusal([](RunRequest&) {}), "");
  EXPECT_EQ(refusal([](RunRequest& r) { r.colocated = true; }), "");
  RunRequest free = pipelined();
  free.mode = Mode::kPs;
  EXPECT_FALSE(shares_work(presumed(free))) << "stages would draw other batches each";
  free.pipeline = 1;
  EXPECT_TRUE(shares_work(presumed(free)));
  EXPECT_EQ(refusal([&](RunRequest& r) {
              in_step(r);
              r.checkpoint_every = *CheckpointInterval::parse("10");
            }),
            "");
  const auto refuses = [&](const std::function<void(RunRequest&)>& change, const std::string& why) {
    EXPECT_THAT(refusal(change), testing::AllOf(testing::StartsWith("--pipeline=2: "), HasSubstr(why)));
  };
  for (const char* consistency : {"softsync:2", "local-sgd:4", "easgd:4"}) {
    refuses([&](RunRequest& r) { r.consistency = *ps::Consistency::parse(consistency); },
            std::string("--consistency=") + consistency);
  }
  refuses(
      [&](RunRequest& r) {
        in_step(r);
        r.backup_workers = 1;
      },
      "--backup-workers=1");
  refuses([](RunRequest& r) { r.replicas = 1; }, "--replicas");
  refuses([](RunRequest& r) { r.respawn_seconds = 1; }, "--respawn");
  refuses([](RunRequest& r) { r.checkpoint_every = *CheckpointInterval::parse("10"); }, "--checkpoint-every: under");
  refuses(
      [&](RunRequest& r) {
        in_step(r);
        r.aggregation = Aggregation::kHost;
      },
      "--aggregation");
  refuses([](RunRequest& r) { r.compress.kind = CodecKind::kFp16; }, "--compress=fp16");
  refuses([](RunRequest& r) { r.pipeline_schedule = worker::PipelineSchedule::kInterleaved; }, "=interleaved");
  refuses([](RunRequest& r) { r.pipeline_schedule = worker::PipelineSchedule::kPipedream; }, "=pipedream");
  refuses([](RunRequest& r) { r.workers = 5; }, "use --workers=4");
}

// The workers of a stage stand in a row.
TEST(PipelineRules, PlacesWorkersStageByStage) {
  RunRequest request = pipelined();
  request.workers = 6;
  const ResolvedRun config = presumed(request);
  EXPECT_EQ(model_replicas(config), 3);
  EXPECT_EQ(replica_batch(config), 2 * config.batch_size);
  for (int rank = 0; rank < 6; ++rank) {
    const ModelPlace place = model_place(config, rank);
    EXPECT_EQ(place.stage, rank / 3);
    EXPECT_EQ(place.replica, rank % 3);
    EXPECT_EQ(worker_at(config, place), rank);
  }
  request.pipeline = 1;
  const ResolvedRun plain = presumed(request);
  EXPECT_EQ(model_replicas(plain), 6);
  EXPECT_EQ(replica_batch(plain), plain.batch_size);
  EXPECT_EQ(model_place(plain, 5).replica, 5);
}

RunRequest split() {
  RunRequest request;
  request.mode = Mode::kAllreduce;
  request.workers = 4;
  request.tensor = 2;
  return request;
}

std::string split_refusal(const std::function<void(RunRequest&)>& change) {
  RunRequest request = split();
  change(request);
  return check(request).message();
}

TEST(TensorRules, AllowsWhatItHas) {
  EXPECT_EQ(split_refusal([](RunRequest&) {}), "");
  EXPECT_EQ(split_refusal([](RunRequest& r) { r.optimizer = OptimizerChoice::kAdam; }), "");
  EXPECT_EQ(split_refusal([](RunRequest& r) { r.collective = CollectiveKind::kTree; }), "");
  EXPECT_EQ(split_refusal([](RunRequest& r) { r.checkpoint_every = *CheckpointInterval::parse("10"); }), "");
  EXPECT_EQ(split_refusal([](RunRequest& r) { r.pipeline = 2; }), "");
  EXPECT_EQ(split_refusal([](RunRequest& r) { r.evaluate_every = *EvaluationInterval::parse("20"); }), "");
}

TEST(TensorRules, NamesWhatItHasNot) {
  const auto refuses = [](const std::function<void(RunRequest&)>& change, const std::string& why) {
    EXPECT_THAT(split_refusal(change), testing::AllOf(testing::StartsWith("--tensor=2: "), HasSubstr(why)));
  };
  refuses([](RunRequest& r) { r.workers = 5; },
          "must divide the 5 workers, of which each part of a layer has as many; use --workers=4");
  refuses([](RunRequest& r) { r.optimizer = OptimizerChoice::kLamb; }, "--optimizer=lamb takes norms of whole tensors");
  refuses([](RunRequest& r) { r.optimizer = OptimizerChoice::kLars; }, "--optimizer=lars takes norms of whole tensors");
  refuses(
      [](RunRequest& r) {
        r.cluster = ClusterKind::kSimulated;
        r.model = "profile:gpt2";
      },
      "--model=profile:gpt2 knows tensors and no layers");
  for (const auto& [change, why] : kRefusedByBoth) refuses(change, why);
}

TEST(TensorRules, CountsTheWorkersOfAReplicaByBoth) {
  RunRequest request = split();
  request.pipeline = 2;
  request.workers = 6;
  EXPECT_THAT(check(request).message(),
              HasSubstr("--pipeline=2: with --tensor=2 4 workers have a whole model, which must divide the 6 workers; "
                        "use --workers=4"));
  request.workers = 8;
  request.microbatches = 3;
  EXPECT_THAT(check(request).message(), HasSubstr("its 4 workers train 256 samples together"));
}

// The parts of layers stand in a row, then the replicas, then the stages.
TEST(TensorRules, PlacesThePartsOfLayersNextToEachOther) {
  RunRequest request = split();
  request.workers = 12;
  request.pipeline = 2;
  const ResolvedRun config = presumed(request);
  EXPECT_EQ(model_replicas(config), 3);
  EXPECT_EQ(replica_batch(config), 4 * config.batch_size);
  for (int rank = 0; rank < 12; ++rank) {
    const ModelPlace place = model_place(config, rank);
    EXPECT_EQ(place, (ModelPlace{.stage = rank / 6, .part = rank % 2, .replica = rank % 6 / 2}));
    EXPECT_EQ(worker_at(config, place), rank);
  }
  request.pipeline = 1;
  const ResolvedRun flat = presumed(request);
  EXPECT_EQ(model_place(flat, 5), (ModelPlace{.stage = 0, .part = 1, .replica = 2}));
  EXPECT_EQ(replica_batch(flat), 2 * flat.batch_size);
}

TEST(PipelineRules, IsAWayOfAComparison) {
  RunRequest base;
  base.workers = 4;
  const auto runs = comparison_runs(base, "local,allreduce,allreduce:pipeline:2,allreduce:pipeline:4");
  ASSERT_TRUE(runs.ok()) << runs.status().message();
  EXPECT_EQ((*runs)[1].config.pipeline, 1);
  EXPECT_EQ((*runs)[2].config.pipeline, 2);
  EXPECT_EQ(mode_of(presumed((*runs)[3].config)), "allreduce:pipeline:4");
  EXPECT_FALSE(check_modes("allreduce:pipeline:1").ok());
  EXPECT_FALSE(check_modes("allreduce:pipeline:x").ok());
}

TEST(TensorRules, IsAWayOfAComparison) {
  RunRequest base;
  base.workers = 4;
  const auto runs = comparison_runs(base, "local,allreduce,allreduce:tensor:2,allreduce:pipeline:2:tensor:2");
  ASSERT_TRUE(runs.ok()) << runs.status().message();
  EXPECT_EQ((*runs)[1].config.tensor, 1);
  EXPECT_EQ((*runs)[2].config.tensor, 2);
  EXPECT_EQ((*runs)[2].config.pipeline, 1);
  EXPECT_EQ((*runs)[3].config.pipeline, 2);
  EXPECT_EQ(mode_of(presumed((*runs)[2].config)), "allreduce:tensor:2");
  EXPECT_EQ(mode_of(presumed((*runs)[3].config)), "allreduce:pipeline:2:tensor:2");
  for (const char* label : {"allreduce:tensor", "allreduce:tensor:1", "allreduce:tensor:x", "allreduce:tensor:2:",
                            "allreduce:tensor:2:ring", "allreduce:tensor:2:pipeline", "sharded:tensor:2"}) {
    EXPECT_FALSE(check_modes(label).ok()) << label;
  }
}

}  // namespace
}  // namespace syncopate::experiments
