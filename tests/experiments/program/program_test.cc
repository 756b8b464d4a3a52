// The program as a person uses it: real processes, real results.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "common/device/gpu_inventory.h"
#include "experiments/cluster/exit_code.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing_support::lines_of;
using testing_support::Program;
using testing_support::ProgramEnd;
using testing_support::run_program;
using testing_support::text_of;

using Flags = std::vector<std::string>;

// A job of a second.
Flags small_run(const Flags& mode) {
  Flags flags{"--model=mlp:784-32-10", "--batch-size=16", "--train-samples=4096", "--test-samples=512"};
  flags.insert(flags.end(), mode.begin(), mode.end());
  return flags;
}

TEST(DryRun, ShowsEveryProcessAndRunsNone) {
  Program program(small_run({"--mode=ps", "--workers=2", "--servers=2", "--dry-run"}));
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_THAT(end.err, IsEmpty());
  // Head, processes, and a blank line before the sharding's head and shards.
  EXPECT_THAT(lines_of(end.out), SizeIs(1 + 5 + 1 + 1 + 2));
  for (const char* process : {"--role=server --rank=0", "--role=server --rank=1", "--role=worker --rank=0",
                              "--role=worker --rank=1", "--role=evaluator --rank=0"}) {
    EXPECT_THAT(end.out, HasSubstr(process));
  }
  EXPECT_THAT(end.out, HasSubstr("\nsharding balanced over 2 shards, chunks of at most 262.14 kB, skew 1.00"));
  EXPECT_FALSE(std::filesystem::exists(program.output()));
}

TEST(DryRun, SaysWhatKeepsItFromKnowingTheShards) {
  const testing_support::TemporaryFolder empty;
  Program program({"--mode=ps", "--dataset=mnist", "--dry-run", "--data-dir=" + empty.path().string()});
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_THAT(end.out, HasSubstr("as things are, the run would end with exit code 3: mnist: found none of"));
}

TEST(DryRun, RefusesWhatTheRunRefuses) {
  const testing_support::TemporaryFolder taken;
  std::ofstream(taken.path() / "file") << "results of another run";
  const std::string output = "--output=" + taken.path().string();
  for (const Flags& flags :
       {Flags{"--mode=ps", "--model=mlp:100-10"}, Flags{"--model=vgg16"}, Flags{"--mode=allreduce", output},
        Flags{"--resume=" + taken.path().string()}, Flags{"--steps=50", "--fault=kill:worker0@step90"}}) {
    std::string errors[2];
    for (const bool dry : {false, true}) {
      Flags all = flags;
      if (dry) all.emplace_back("--dry-run");
      const ProgramEnd end = run_program(all);
      EXPECT_NE(end.exit_code, 0) << flags.back();
      errors[dry ? 1 : 0] = std::to_string(end.exit_code) + " " + end.err;
    }
    EXPECT_EQ(errors[0], errors[1]);
  }
}

TEST(Version, SaysWhatTheProgramWasMadeOf) {
  const ProgramEnd end = run_program({"--version"});
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_THAT(end.out, ContainsRegex("^syncopate [0-9.]+\n  sources    [0-9a-f]{16}"));
  EXPECT_THAT(end.out, HasSubstr("zeromq"));
}

TEST(Help, ShowsATopicAndRefusesWhatIsNone) {
  EXPECT_THAT(run_program({"--help=ps"}).out, HasSubstr("--consistency=KIND"));
  EXPECT_EQ(run_program({"--help=nonsense"}).exit_code, 2);
}

TEST(Sharding, IsShownBeforeTheRunAndRecorded) {
  Program program(small_run({"--mode=ps", "--consistency=sync", "--servers=2", "--shards-per-server=2",
                             "--sharding=tensor", "--chunk-bytes=4096", "--steps=20"}));
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, ContainsRegex("^sharding tensor over 4 shards, chunks of at most 4.10 kB, skew 3.9"));
  EXPECT_THAT(end.out, ContainsRegex("\n  server 0, shard 0 +100.35 kB +25 chunks\n"));
  EXPECT_THAT(end.out, HasSubstr("\n  sharding          tensor: server 0, shard 0 holds 3.94 x the mean\n"));
  const nlohmann::json sharding = program.summary()["sharding"];
  EXPECT_EQ(sharding["policy"], "tensor");
  EXPECT_THAT(sharding["bytes"], ElementsAre(784 * 32 * 4, 32 * 4, 32 * 10 * 4, 16 * 4));
  EXPECT_THAT(sharding["chunks"], ElementsAre(25, 1, 1, 1));
}

// Sets an environment variable for the programs that are started in its lifetime.
class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) { setenv(name, value.c_str(), 1); }
  ~Environment() { unsetenv(name_); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
};

TEST(CollectiveAuto, MeasuresTheWireOnceAndSaysWhatItTook) {
  const testing_support::TemporaryFolder cache;
  const Environment kept("XDG_CACHE_HOME", cache.path().string());
  using testing_support::operator+;
  const auto finding = [](const Flags& more = {}) {
    Program program(small_run(Flags{"--mode=allreduce", "--transport=sockets", "--workers=3", "--steps=20"} + more));
    const ProgramEnd end = program.wait();
    EXPECT_EQ(end.exit_code, 0) << end.err;
    return program.summary()["facts"].value("collective", "");
  };
  EXPECT_THAT(finding(), testing::MatchesRegex(
                             "[0-9.]+ us a message (and [0-9.]+ GB/s|of any length) \\(measured now\\): [a-z-]+.*"));
  EXPECT_THAT(finding(), HasSubstr(" (measured in an earlier run): "));
  EXPECT_THAT(finding({"--measure-wire"}), HasSubstr(" (measured now): "));
}

TEST(Device, ThatIsNotThereIsRefusedBeforeAnythingIsLaunched) {
  if (find_gpus().ok()) GTEST_SKIP() << "there is a GPU";
  for (const Flags& mode : {Flags{"--mode=local", "--device=cuda"}, Flags{"--mode=ps", "--device=cuda", "--dry-run"},
                            Flags{"--mode=allreduce", "--collective=nccl", "--device=auto"}}) {
    Program program(small_run(mode));
    const ProgramEnd end = program.wait();
    EXPECT_EQ(end.exit_code, 2);
    EXPECT_THAT(lines_of(end.err), ElementsAre(HasSubstr("--device=cuda: ")));
    EXPECT_FALSE(std::filesystem::exists(program.output()));
  }
}

TEST(ProcessList, ShowsRoleRankAndRun) {
  Program program(small_run({"--mode=ps", "--workers=2", "--servers=2", "--steps=1000000000"}));
  for (const auto& [role, rank] :
       {std::pair("server", 0), {"server", 1}, {"worker", 0}, {"worker", 1}, {"evaluator", 0}}) {
    EXPECT_NE(program.process(role, rank), 0);
  }
  EXPECT_THAT(program.processes(), SizeIs(5));
}

// A column of a results file, without its name.
std::vector<std::string> column(const std::string& csv, const std::string& name) {
  std::vector<std::string> values;
  std::size_t index = 0;
  for (const std::string& line : lines_of(csv)) {
    std::vector<std::string> fields;
    std::istringstream rest(line);
    for (std::string field; std::getline(rest, field, ',');) fields.push_back(field);
    if (values.empty()) index = static_cast<std::size_t>(std::ranges::find(fields, name) - fields.begin());
    values.push_back(index < fields.size() ? fields[index] : "no " + name);
  }
  if (!values.empty()) values.erase(values.begin());
  return values;
}

TEST(Results, AreThereAndAgreeWithEachOther) {
  Program program(small_run({"--mode=ps", "--consistency=bounded:1", "--workers=2", "--servers=2", "--epochs=2"}));
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.err, IsEmpty());
  const auto steps = 2 * 4096 / (2 * 16);
  EXPECT_THAT(lines_of(program.steps_csv()), SizeIs(1 + 2 * steps));
  EXPECT_THAT(lines_of(text_of(program.output() / "evals.csv")), SizeIs(1 + 2));
  const nlohmann::json summary = program.summary();
  EXPECT_EQ(summary["outcome"], "completed");
  EXPECT_EQ(summary["total_steps"], 2 * steps);
  EXPECT_EQ(summary["total_samples"], 2 * 4096);
  EXPECT_GT(summary["samples_per_second"], 0);
  // Between a pull and the push that follows, the other worker goes at most from one step behind to one ahead.
  EXPECT_LE(summary["staleness_max"], 3);
  EXPECT_THAT(program.weights(), SizeIs(784 * 32 + 32 + 32 * 10 + 10));
  for (const char* log : {"worker-0.log", "worker-1.log", "server-0.log", "server-1.log", "evaluator-0.log"}) {
    EXPECT_TRUE(std::filesystem::exists(program.output() / "logs" / log)) << log;
  }
}

// Two thirds of the gradients out and in for reducing, and as much again for gathering. The model's tensors fill whole
// cache lines but for the last bias, of 10.
TEST(BytesOverOpenMpi, AreWhatAnAllreduceMustAtLeastSend) {
  if (testing_support::kSanitized) GTEST_SKIP() << testing_support::kWhyNoMpi;
  Program program(small_run(
      {"--mode=allreduce", "--collective=mpi", "--launcher=mpirun", "--workers=3", "--steps=1", "--warmup-steps=0"}));
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  constexpr std::size_t kArena = 784 * 32 + 32 + 32 * 10 + 16;
  const std::string bytes = fmt::format("{}", 4 * kArena * sizeof(float) / 3);
  EXPECT_THAT(column(program.steps_csv(), "bytes_out"), ElementsAre(bytes, bytes, bytes));
  EXPECT_THAT(column(program.steps_csv(), "bytes_in"), ElementsAre(bytes, bytes, bytes));
}

// "modeallreduceworkers3gossip"
const auto kLettersOfFlags = [](const auto& flags) {
  std::string name;
  for (const std::string& flag : flags.param) {
    std::ranges::copy_if(flag, std::back_inserter(name), [](unsigned char c) { return std::isalnum(c) != 0; });
  }
  return name;
};

class Reproduction : public testing::TestWithParam<Flags> {};

INSTANTIATE_TEST_SUITE_P(Of, Reproduction,
                         testing::Values(Flags{"--mode=local"}, Flags{"--mode=allreduce", "--workers=3"},
                                         Flags{"--mode=allreduce", "--workers=3", "--sync-every=4"},
                                         Flags{"--mode=allreduce", "--workers=3", "--gossip", "--sync-every=2"},
                                         Flags{"--mode=ps", "--consistency=sync", "--workers=2", "--servers=2"}),
                         kLettersOfFlags);

TEST_P(Reproduction, FromTheConfigWrittenBackIsExact) {
  Program first(small_run(GetParam()));
  ASSERT_EQ(first.wait().exit_code, 0);
  Program again({"--config=" + (first.output() / "config.toml").string()});
  ASSERT_EQ(again.wait().exit_code, 0);
  EXPECT_THAT(first.weights(), Not(IsEmpty()));
  EXPECT_TRUE(first.weights() == again.weights());
  EXPECT_EQ(text_of(first.output() / "config.toml"), text_of(again.output() / "config.toml"));
}

TEST(BucketSize, IsSearchedForAndRecorded) {
  const Flags flags = small_run({"--mode=allreduce", "--bucket-bytes=auto", "--warmup-steps=0"});
  for (const auto& [steps, finding] : {std::pair("--steps=40", "[0-9.]+ MiB; a step took [0-9.]+ ms with 0.0625 MiB, "),
                                       std::pair("--steps=20", "not found: a search takes 37 steps")}) {
    Flags run = flags;
    run.emplace_back(steps);
    Program program(run);
    const ProgramEnd end = program.wait();
    ASSERT_EQ(end.exit_code, 0) << end.err;
    EXPECT_THAT(program.summary()["facts"]["bucket size"].get<std::string>(), ContainsRegex(finding));
    EXPECT_THAT(end.out, ContainsRegex("\n  bucket size +" + std::string(finding)));
  }
}

TEST(GlobalBatchSize, IsSharedAmongTheWorkers) {
  Program program({"--mode=allreduce", "--workers=3", "--global-batch-size=48", "--steps=20", "--train-samples=4096",
                   "--test-samples=512"});
  ASSERT_EQ(program.wait().exit_code, 0);
  const std::vector<std::string> samples = column(program.steps_csv(), "samples");
  EXPECT_THAT(samples, SizeIs(3 * 20));
  EXPECT_THAT(samples, testing::Each("16"));
  EXPECT_EQ(program.summary()["total_samples"], 20 * 48);
}

TEST(Repeat, GivesSpread) {
  Program program(small_run({"--mode=allreduce", "--steps=40", "--repeat=2"}));
  ASSERT_EQ(program.wait().exit_code, 0);
  const nlohmann::json summary = program.summary();
  EXPECT_EQ(summary["repeats"], 2);
  EXPECT_THAT(summary["each_repeat"], SizeIs(2));
  EXPECT_LE(summary["samples_per_second_min"], summary["samples_per_second"]);
  EXPECT_LE(summary["samples_per_second"], summary["samples_per_second_max"]);
  EXPECT_LT(summary["samples_per_second_min"], summary["samples_per_second_max"]);
  EXPECT_THAT(column(program.steps_csv(), "repeat"), testing::IsSupersetOf({"0", "1"}));
}

TEST(TargetAccuracy, EndsTheTrainingWhereThatIsAskedForAndTheTimeIsRecorded) {
  for (const Flags& mode : {Flags{"--mode=allreduce"}, Flags{"--mode=ps", "--consistency=async"}}) {
    Flags flags = small_run(mode);
    flags.insert(flags.end(), {"--epochs=500", "--target-accuracy=0.5", "--stop-at-target"});
    Program program(flags);
    const ProgramEnd end = program.wait();
    ASSERT_EQ(end.exit_code, 0) << end.err;
    const nlohmann::json summary = program.summary();
    EXPECT_LT(summary["total_samples"], 500 * 4096);
    EXPECT_THAT(summary.value("outcome", ""),
                ContainsRegex("^stopped at the target: training ended after [0-9,]+ of 2,048,000 "
                              "samples, with --target-accuracy=0.5 reached$"));
    EXPECT_THAT(end.out, HasSubstr("outcome           stopped at the target"));
    EXPECT_GT(summary["seconds_to_target"], 0);
    EXPECT_GT(summary["samples_to_target"], 0);
    EXPECT_GE(summary["final_test_accuracy"], 0.5);
    EXPECT_THAT(program.weights(), Not(IsEmpty()));
  }
}

// Which weights are evaluated.
struct Evaluated {
  const char* name;
  Flags mode;
  const char* weights;
  bool is_in_step = true;  // the worker that takes snapshots goes through all steps of the job
};

void PrintTo(const Evaluated& evaluated, std::ostream* out) { *out << evaluated.name; }

class EvaluateEvery : public testing::TestWithParam<Evaluated> {};

INSTANTIATE_TEST_SUITE_P(
    Of, EvaluateEvery,
    testing::Values(
        Evaluated{"Local", {"--mode=local"}, "the worker's"},
        Evaluated{"Allreduce", {"--mode=allreduce"}, "all workers', which are the same"},
        Evaluated{"Averaged", {"--mode=allreduce", "--sync-every=5"}, "the mean of all workers, when they have met"},
        Evaluated{
            "Gossip", {"--mode=allreduce", "--gossip", "--sync-every=5", "--workers=3"}, "the mean of all workers"},
        Evaluated{"AsyncGossip",
                  {"--mode=allreduce", "--gossip=async", "--work=quota", "--workers=3"},
                  "the mean of all workers"},
        Evaluated{"PsSync", {"--mode=ps", "--consistency=sync"}, "all workers', which are the same"},
        Evaluated{
            "PsAsync", {"--mode=ps", "--consistency=async"}, "the servers', as a worker was answered last", false},
        Evaluated{
            "LocalSgd", {"--mode=ps", "--consistency=local-sgd:5"}, "the mean of all workers, when they have met"},
        Evaluated{"Easgd", {"--mode=ps", "--consistency=easgd:5"}, "the center, when a worker has met it", false}),
    [](const auto& evaluated) { return evaluated.param.name; });

TEST_P(EvaluateEvery, EvaluatesAtThePointsThatAreAskedForAndSaysWhoseWeights) {
  Flags flags = small_run(GetParam().mode);
  flags.insert(flags.end(), {"--steps=100", "--evaluate-every=20"});
  if (!GetParam().is_in_step) flags.push_back("--straggler=all:+5");  // else one worker may pass all points at once
  Program program(flags);
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  const nlohmann::json summary = program.summary();
  EXPECT_EQ(summary["evaluations"]["every"], "every 20 steps");
  EXPECT_EQ(summary["evaluations"]["weights"], GetParam().weights);
  EXPECT_EQ(summary["evaluations"]["points"], 4);
  const std::vector<std::string> rows = lines_of(text_of(program.output() / "evals.csv"));
  const int evaluated = summary["evaluations"]["evaluated"];
  ASSERT_THAT(rows, SizeIs(1 + evaluated + 1)) << "behind a head; the final weights are no point";
  EXPECT_THAT(end.out, HasSubstr(fmt::format("evaluated         {} of 4 points, every 20 steps, and at the end: {}",
                                             evaluated, GetParam().weights)));
  EXPECT_EQ(summary.contains("not_evaluated"), evaluated < 4);
  if (!GetParam().is_in_step) {
    EXPECT_GE(evaluated, 1) << "one worker may pass several points of the shared job at once";
    return;
  }
  EXPECT_EQ(evaluated, 4);
  for (int point = 1; point <= 4; ++point) {
    EXPECT_THAT(rows[static_cast<std::size_t>(point)], ContainsRegex(fmt::format("^0,[0-9.]+,{},", 20 * point)));
  }
}

TEST(EvaluateEverySoManySeconds, EvaluatesAsTimePasses) {
  Flags flags = small_run({"--mode=local", "--straggler=0:+20"});
  flags.insert(flags.end(), {"--steps=60", "--evaluate-every=0.2s"});
  Program program(flags);
  ASSERT_EQ(program.wait().exit_code, 0);
  const nlohmann::json summary = program.summary();
  EXPECT_EQ(summary["evaluations"]["every"], "every 0.2 s");
  EXPECT_GE(summary["evaluations"]["evaluated"], 4) << "steps take 1.2 s together at least";
}

TEST(TargetAccuracy, IsJudgedTwentyTimesInARunAtLeast) {
  Flags flags = small_run({"--mode=local"});
  flags.insert(flags.end(), {"--epochs=2", "--target-accuracy=0.99"});
  Program program(flags);
  ASSERT_EQ(program.wait().exit_code, 0);
  EXPECT_EQ(program.summary()["evaluations"]["points"], 19);
  EXPECT_EQ(program.summary()["evaluations"]["every"], "every 0.1 epochs (25.6 steps)");
}

TEST(TargetAccuracy, EndsNothingByItself) {
  Flags flags = small_run({"--mode=allreduce"});
  flags.insert(flags.end(), {"--epochs=3", "--target-accuracy=0.2"});
  Program program(flags);
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  const nlohmann::json summary = program.summary();
  EXPECT_EQ(summary["outcome"], "completed");
  EXPECT_EQ(summary["total_samples"], 3 * 4096);
  EXPECT_GT(summary["seconds_to_target"], 0);
  EXPECT_LE(summary["seconds_to_target"], summary["training_seconds"]);
  EXPECT_GT(summary["seconds_to_target_resolution"], 0);
  EXPECT_THAT(end.out, ContainsRegex("time to 20 % +[^\n]* s, [0-9,]+ samples, known within [^\n]* s\n"));
}

TEST(Faults, ThatAreNeverDueAreWarnedOf) {
  Flags flags = small_run({"--mode=ps", "--consistency=async"});
  flags.insert(flags.end(), {"--steps=40", "--fault=stop:server0@3000s+1s"});
  Program program(flags);
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.err, ContainsRegex("warning: --fault=stop:server0@3000s\\+1s: it was never due: training lasted "
                                     "[0-9.]+ s"));
  const nlohmann::json fault = program.summary()["faults"][0];
  EXPECT_FALSE(fault["done"]);
  EXPECT_THAT(fault.value("outcome", ""), HasSubstr("it was never due"));
}

class EveryConsistency : public testing::TestWithParam<Flags> {};

INSTANTIATE_TEST_SUITE_P(
    Of, EveryConsistency,
    testing::Values(Flags{"--consistency=sync", "--backup-workers=1"}, Flags{"--consistency=bounded:2"},
                    Flags{"--consistency=softsync:1", "--staleness-lr=divide"}, Flags{"--consistency=async"},
                    Flags{"--consistency=async", "--delay-compensation=0.04"},
                    Flags{"--consistency=async", "--delay-compensation=adaptive:2", "--optimizer=sgd"},
                    Flags{"--consistency=async", "--optimizer=momentum", "--learning-rate=0.02",
                          "--momentum-correction"},
                    Flags{"--consistency=local-sgd:4"}, Flags{"--consistency=easgd:4", "--elastic-alpha=0.3"}));

// With a last round that is shorter than the others, where workers make steps of their own.
TEST_P(EveryConsistency, LearnsAndRecordsItself) {
  Flags flags = small_run({"--mode=ps", "--workers=3", "--servers=2", "--steps=150"});
  flags.insert(flags.end(), GetParam().begin(), GetParam().end());
  Program program(flags);
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  const nlohmann::json summary = program.summary();
  if (GetParam().back().starts_with("--backup-workers")) {
    // Two of the three make an update, and there are as many updates as use the job's samples.
    EXPECT_NEAR(summary["used_samples"].get<double>(), 3 * 150 * 16, 0.05 * 3 * 150 * 16);
  } else {
    EXPECT_EQ(summary["total_steps"], 3 * 150);
  }
  EXPECT_GT(summary["final_test_accuracy"], 0.3);
  EXPECT_GE(summary["dropped"], 0);
  std::int64_t steps = 0;
  for (const nlohmann::json& bin : summary["staleness_histogram"]) steps += bin["steps"].get<std::int64_t>();
  // On a busy machine all workers may never train at once: then it is of all steps.
  const nlohmann::json& window = summary["steady_window"];
  EXPECT_EQ(steps, window.is_null() ? summary["total_steps"] : window["steps"]);
  const std::string record = text_of(program.output() / "config.toml");
  for (const std::string& flag : GetParam()) {
    EXPECT_THAT(record, HasSubstr(flag.substr(2, flag.find('=') - 2) + " = ")) << flag;
  }
}

// More processes than cores, and a good deal more.
class EightWorkers : public testing::TestWithParam<Flags> {};

INSTANTIATE_TEST_SUITE_P(Of, EightWorkers,
                         testing::Values(Flags{"--mode=allreduce"},
                                         Flags{"--mode=ps", "--consistency=async", "--servers=2"},
                                         Flags{"--mode=ps", "--consistency=sync", "--shards-per-server=2"}));

TEST_P(EightWorkers, FinishOnAnyMachine) {
  Flags flags = small_run(GetParam());
  flags.insert(flags.end(), {"--workers=8", "--steps=30"});
  Program program(flags);
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(program.summary()["total_steps"], 8 * 30);
  EXPECT_THAT(program.processes(), IsEmpty());
}

// More than a machine word has bits, on any machine.
class SeventyWorkers : public testing::TestWithParam<Flags> {};

INSTANTIATE_TEST_SUITE_P(Of, SeventyWorkers,
                         testing::Values(Flags{"--mode=allreduce"},
                                         Flags{"--mode=allreduce", "--collective=ring", "--transport=sockets"},
                                         Flags{"--mode=ps", "--consistency=sync", "--servers=2"}));

TEST_P(SeventyWorkers, Finish) {
  if (testing_support::kSanitized) GTEST_SKIP() << "seventy processes with a sanitizer's memory each";
  Flags flags = small_run(GetParam());
  flags.insert(flags.end(), {"--workers=70", "--steps=3", "--warmup-steps=1"});
  Program program(flags);
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(program.summary()["total_steps"], 70 * 3);
  EXPECT_THAT(program.processes(), IsEmpty());
}

}  // namespace
}  // namespace syncopate::experiments
