// A study as a person uses it: killed in the middle, gone on with, from a file, several cells at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "experiments/cluster/exit_code.h"
#include "experiments/lab/predict/prediction_line.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing_support::Program;
using testing_support::ProgramEnd;
using testing_support::text_of;
using testing_support::operator+;

using Flags = std::vector<std::string>;

const Flags kSmallStudy{"--cluster=simulated",  "--model=mlp:784-32-10", "--batch-size=16",
                        "--train-samples=4096", "--test-samples=256",    "--warmup-steps=2"};

Flags study(const Flags& more) { return Flags{"study"} + kSmallStudy + more; }

const Flags kScalingStudy{"--compute=5ms", "--shape=1gbit", "--vary=workers=1,2,4", "--modes=allreduce,ps:sync"};

nlohmann::json report_of(const Program& program) {
  return nlohmann::json::parse(text_of(program.output() / "comparison.json"));
}

std::size_t cells_with(const std::string& study, const char* file) {
  std::size_t cells = 0;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(study, ignored)) {
    cells += std::filesystem::exists(entry.path() / file, ignored) ? 1 : 0;
  }
  return cells;
}

// What runs in virtual time is the same in one process and in many, alone and beside others.
TEST(Study, IsTheSameHoweverManyCellsRunAtOnce) {
  Program alone(study(kScalingStudy + Flags{"--jobs=1", "--steps=40"}));
  Program together(study(kScalingStudy + Flags{"--jobs=3", "--steps=40"}));
  const ProgramEnd end = together.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(alone.wait().exit_code, 0) << alone.errors();
  EXPECT_EQ(text_of(alone.output() / "comparison.csv"), text_of(together.output() / "comparison.csv"));
  EXPECT_THAT(end.out, AllOf(HasSubstr("simulated in virtual time"), ContainsRegex("\nScaling: "),
                             ContainsRegex("\nallreduce workers=4 +4 +[0-9.]+x +[0-9.]+ %\n"),
                             ContainsRegex("\nallreduce workers=4 +allreduce workers=1\n")));
  EXPECT_FALSE(std::filesystem::exists(together.output() / "cells"));
  const nlohmann::json report = report_of(together);
  EXPECT_EQ(report["scaling"].size(), 6u);
  // One server's bytes, which it counts, are those of all workers, which count theirs.
  const nlohmann::json& row = report["rows"].back();
  const nlohmann::json& round = row["rounds"][0];
  const double of_a_worker = round["bytes_out_per_step"].get<double>() + round["bytes_in_per_step"].get<double>();
  EXPECT_NEAR(row["server_megabytes_per_step"].get<double>(), 4 * of_a_worker / 1e6, 0.03 * 4 * of_a_worker / 1e6);
}

// The title names what all rows have in common, and of what is varied no value.
TEST(Study, HasATitleThatEveryRowHolds) {
  const auto job_of = [](const Flags& links) {
    Program program(study(links + Flags{"--compute=5ms", "--modes=allreduce", "--steps=4"}));
    const ProgramEnd end = program.wait();
    EXPECT_EQ(end.exit_code, 0) << end.err;
    return report_of(program)["job"].get<std::string>();
  };
  EXPECT_THAT(job_of({"--vary=shape=1gbit,10gbit"}), AllOf(HasSubstr("shape varied"), Not(HasSubstr("Gb/s"))));
  EXPECT_THAT(job_of({"--shape=1gbit", "--vary=workers=1,2"}),
              AllOf(HasSubstr("workers varied"), HasSubstr("1 Gb/s each way")));
}

TEST(Study, GoesOnWhereItWasKilled) {
  const testing_support::TemporaryFolder folder;
  const std::string output = folder.path() / "study";
  const Flags flags = study(kScalingStudy + Flags{"--steps=400", "--jobs=2", "--output=" + output});
  Program killed(flags);
  ASSERT_TRUE(killed.wait_until("two cells have ended", [&] { return cells_with(output, "summary.json") >= 2; }));
  killed.signal(SIGKILL);
  killed.wait();
  EXPECT_THAT(killed.processes(), IsEmpty()) << "cells end with what has started them";
  Program again(flags);
  const ProgramEnd end = again.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, ContainsRegex("run [1-6]/6: [^\n]* kept "));
  EXPECT_THAT(end.out, ContainsRegex("\n[2-6] of the runs were completed before, and kept\n"));
  Program whole(study(kScalingStudy + Flags{"--steps=400"}));
  ASSERT_EQ(whole.wait().exit_code, 0) << whole.errors();
  EXPECT_EQ(text_of(again.output() / "comparison.csv"), text_of(whole.output() / "comparison.csv"));
}

TEST(Study, SaysHowItGoesOnWhenItIsInterrupted) {
  const testing_support::TemporaryFolder folder;
  const std::string output = folder.path() / "study";
  Program program(study(kScalingStudy + Flags{"--steps=1000000", "--output=" + output}));
  ASSERT_TRUE(program.wait_until("a cell has begun", [&] { return cells_with(output, "steps.csv") > 0; }));
  program.signal(SIGINT);
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, static_cast<int>(ExitCode::kInterrupted));
  EXPECT_THAT(end.out, HasSubstr("the same command with --output=" + output + " goes on from here"));
  EXPECT_THAT(program.processes(), IsEmpty());
}

// Other settings would be another study.
TEST(Study, DoesNotMixRunsOfOtherSettings) {
  const testing_support::TemporaryFolder folder;
  const std::string output = folder.path() / "study";
  Program first(study(kScalingStudy + Flags{"--steps=20", "--output=" + output}));
  ASSERT_EQ(first.wait().exit_code, 0) << first.errors();
  Program second(study(kScalingStudy + Flags{"--steps=30", "--output=" + output}));
  const ProgramEnd end = second.wait();
  EXPECT_EQ(end.exit_code, static_cast<int>(ExitCode::kUsage));
  EXPECT_THAT(end.err, AllOf(HasSubstr("steps = 20, not steps = 30"), HasSubstr("name another --output")));
}

// The simulated exchange and the closed form of it are two ways to the same figure.
TEST(Study, SaysWhereTheTimeOfEachRowWentAndHoldsItAgainstTheClosedForm) {
  Program program(study({"--compute=5ms", "--shape=100mbit", "--steps=40", "--vary=workers=2,8",
                         "--modes=allreduce:ring,ps:sync", "--overlap=off"}));
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, AllOf(ContainsRegex("\nallreduce:ring workers=8: [0-9]+ % of ideal: [^\n]* thin link"),
                             ContainsRegex("\nWhere a step's time went: ")));
  for (const nlohmann::json& row : report_of(program)["rows"]) {
    SCOPED_TRACE(row["label"]);
    const nlohmann::json& step = row["step_parts"];
    double sum = step["ideal_ms"];
    for (const auto& [name, ms] : step["parts_ms"].items()) sum += ms.get<double>();
    EXPECT_NEAR(sum, step["measured_ms"], 1e-6);
    if (row["mode"] != "allreduce:ring") continue;
    const double predicted = step["predicted_samples_per_second"];
    EXPECT_NEAR(row["window_samples_per_second_median"].get<double>() / predicted, 1, 0.05);
  }
}

// More rounds of the same study are rounds of it.
TEST(Study, TakesTheRoundsThatItHas) {
  const testing_support::TemporaryFolder folder;
  const std::string output = folder.path() / "study";
  const Flags flags = study(kScalingStudy + Flags{"--steps=20", "--output=" + output});
  Program first(flags);
  ASSERT_EQ(first.wait().exit_code, 0) << first.errors();
  Program second(flags + Flags{"--repeat=2"});
  const ProgramEnd end = second.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("\n6 of the runs were completed before, and kept\n"));
  EXPECT_EQ(report_of(second)["rounds_asked"], 2);
  Program third(flags + Flags{"--repeat=2"});
  EXPECT_THAT(third.wait().out, HasSubstr("\nall 12 runs were completed before, and kept\n")) << "there are no others";
}

// All cells compute in the times that were measured once, in whichever process they run.
TEST(Study, MeasuresComputingOnce) {
  Program program(study({"--vary=workers=1,2", "--modes=allreduce", "--steps=20", "--processing=solo"}));
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, ContainsRegex("\nmeasuring mlp:784-32-10 batch 16, alone\n"));
  const auto compute = [&](const char* row) {
    return nlohmann::json::parse(text_of(program.output() / row / "summary.json"))["simulated"]["compute"];
  };
  EXPECT_EQ(compute("allreduce-workers-1-1"), compute("allreduce-workers-2-1"));
  EXPECT_THAT(compute("allreduce-workers-1-1").get<std::string>(), HasSubstr("measured/mlp-784-32-10-batch-16"));
}

TEST(Study, IsReadFromAFile) {
  const testing_support::TemporaryFolder folder;
  const std::string file = folder.path() / "study.toml";
  std::ofstream(file) << "# which scales better?\nmodes = \"allreduce,ps:async\"\nvary.workers = \"1,2\"\n"
                         "cluster = \"simulated\"\ncompute = \"5ms\"\nmodel = \"mlp:784-32-10\"\n"
                         "train-samples = 4096\ntest-samples = 256\nbatch-size = 16\nsteps = 1000\nprice-worker = 3\n"
                         "price-server = 1\n";
  Program program({"study", file, "--steps=20", "--warmup-steps=2"});
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, AllOf(ContainsRegex("\nps:async workers=2 "), HasSubstr("Cost: 3 for a worker and hour")));
  EXPECT_THAT(text_of(program.output() / "ps-async-workers-2-1/config.toml"), HasSubstr("steps = 20 "));
  // One worker at 3 and one server at 1 for as long as it trained.
  const nlohmann::json row = report_of(program)["rows"][2];
  EXPECT_EQ(row["label"], "ps:async workers=1");
  EXPECT_NEAR(row["cost"].get<double>(), 4 * row["training_seconds"]["mean"].get<double>() / 3600, 1e-9);
}

TEST(Study, SaysThatWorkersShareCores) {
  const std::string beyond = std::to_string(std::thread::hardware_concurrency() + 1);
  const Flags flags{"study",     "--model=softmax",  "--train-samples=4096", "--test-samples=64",
                    "--steps=4", "--modes=ps:async", "--warmup-steps=1",     "--batch-size=8"};
  Program program(flags + Flags{"--vary=workers=1," + beyond});
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("--cluster=simulated gives each a machine of its own"));
  Program few(flags + Flags{"--vary=workers=1"});
  EXPECT_THAT(few.wait().out, Not(HasSubstr("share this machine's")));
}

TEST(Study, HasRowsThatAreLikeOtherSystems) {
  Program program(study({"--compute=5ms", "--steps=20", "--vary=workers=2,3", "--modes=like:horovod,like:tf-ps"}));
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, AllOf(ContainsRegex("\nlike:horovod workers=3 "),
                             ContainsRegex("\nlike tf-ps: TensorFlow's [^\n]*; not the same: ")));
  EXPECT_THAT(text_of(program.output() / "like-horovod-workers-2-1/config.toml"), HasSubstr("collective = \"ring\" "));
}

// What varies is known well enough after the fewest rounds that have intervals, what does not after two that are alike.
TEST(Study, EndsItsRoundsOnceRowsAreKnownWellEnough) {
  Program varying(study(kScalingStudy + Flags{"--steps=20", "--repeat=auto:20%", "--straggler=all:exp:0.1"}));
  const ProgramEnd end = varying.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(
      end.out,
      HasSubstr("--repeat=auto: 5 rounds: each row is told from the first and from the fastest, or within 20 % of it"));
  EXPECT_EQ(report_of(varying)["rounds_asked"], 5);
  Program alike(study(kScalingStudy + Flags{"--steps=20", "--repeat=auto:1%"}));
  EXPECT_THAT(alike.wait().out,
              HasSubstr("--repeat=auto: 2 rounds: this simulation draws nothing that moves its times"));
  EXPECT_EQ(report_of(alike)["rounds_asked"], 2);
  Program wrong({"study", "--vary=workers=1,2", "--repeat=auto:0%"});
  EXPECT_THAT(wrong.wait().err, HasSubstr("must be auto, or auto:0.1% to auto:50%"));
}

// Nothing of a profile's run is drawn, so that one round says all, unless delays are.
TEST(Study, JudgesAProfileByOneRound) {
  const Flags job{"study",
                  "--cluster=simulated",
                  "--model=profile:resnet50",
                  "--compute=150ms",
                  "--shape=10gbit",
                  "--modes=allreduce:ring,ps:sync",
                  "--vary=workers=2,4",
                  "--steps=4",
                  "--warmup-steps=1"};
  Program certain(job);
  EXPECT_THAT(certain.wait().out, AllOf(HasSubstr("Judged as exact"), HasSubstr("Answer: in this simulation")));
  EXPECT_EQ(report_of(certain)["rounds_asked"], 1);
  Program drawn(job + Flags{"--straggler=all:exp:1"});
  EXPECT_THAT(drawn.wait().out, HasSubstr("Not judged: 1 round"));
}

// A study of small sizes tells what larger ones will do, and a run of those does it.
TEST(Study, IsCarriedToSizesThatItHasNotRun) {
  const Flags job{"--cluster=simulated", "--model=profile:resnet50", "--compute=150ms",
                  "--shape=10gbit+50us", "--batch-size=32",          "--steps=6",
                  "--warmup-steps=2"};
  const Flags modes{"--modes=allreduce:ring,ps:sync", "--servers=2"};
  Program small(Flags{"study"} + job + modes + Flags{"--vary=workers=1,2,4"});
  Program large(Flags{"study"} + job + modes + Flags{"--vary=workers=8,16"});
  ASSERT_EQ(small.wait().exit_code, 0) << small.errors();
  ASSERT_EQ(large.wait().exit_code, 0) << large.errors();
  const testing_support::TemporaryFolder folder;
  const std::string output = (folder.path() / "carried").string();
  const Result<std::string> carried =
      prediction_text({"study", small.output().string(), "--to=workers=8,16", "--output=" + output});
  ASSERT_TRUE(carried.ok()) << carried.status().message();
  EXPECT_THAT(*carried, AllOf(HasSubstr("ring allreduce, fitted to 1, 2 and 4 workers"),
                              HasSubstr("servers: 2, even shards, fitted to 1, 2 and 4 workers")));
  const nlohmann::json rows = nlohmann::json::parse(text_of(output + "/prediction.json"))["rows"];
  const nlohmann::json report = report_of(large);
  int checked = 0;
  for (const auto& run : report["rows"]) {
    const double measured = run["rounds"][0]["steady_window"]["samples_per_second"];
    const std::string exchange = run["mode"] == "ps:sync" ? "servers: 2, even shards" : "ring allreduce";
    for (const auto& row : rows) {
      if (row["exchange"] != exchange || row["workers"] != run["workers"]) continue;
      EXPECT_GE(measured, row["samples_per_second_low"]) << row;
      EXPECT_LE(measured, row["samples_per_second_high"]) << row;
      ++checked;
    }
  }
  EXPECT_EQ(checked, 4);
}

TEST(Study, NamesWhatItCannotTake) {
  const auto refusal = [](const Flags& flags) {
    Program program(flags);
    const ProgramEnd end = program.wait();
    EXPECT_EQ(end.exit_code, static_cast<int>(ExitCode::kUsage));
    return end.err;
  };
  EXPECT_THAT(refusal({"study", "--workers=2"}), HasSubstr("varies nothing"));
  EXPECT_THAT(refusal({"study", "no-such.toml", "--vary=workers=1,2"}), HasSubstr("must be the file of a study"));
  EXPECT_THAT(refusal({"study", "--vary=workers=1,2", "--jobs=2"}),
              HasSubstr("would take the machine from each other"));
  EXPECT_THAT(refusal(study({"--vary=workers=1,2", "--jobs=0"})), HasSubstr("must be 1 to 1024"));
  EXPECT_THAT(refusal({"study", "--vary=workers=1,2", "--price-worker=1"}), HasSubstr("--price-server is missing"));
  const testing_support::TemporaryFolder folder;
  std::ofstream(folder.path() / "sizes.toml") << "modez = \"allreduce\"\n";
  EXPECT_THAT(refusal({"study", (folder.path() / "sizes.toml").string()}), HasSubstr("did you mean modes?"));
  std::ofstream(folder.path() / "notes.txt") << "mine";
  EXPECT_THAT(refusal(study(kScalingStudy + Flags{"--output=" + folder.path().string()})),
              HasSubstr("something else than a comparison"));
  EXPECT_EQ(text_of(folder.path() / "notes.txt"), "mine");
}

}  // namespace
}  // namespace syncopate::experiments
