// Runs that write checkpoints, end before their time, and are taken up again: they come to what an unbroken run does.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>

#include <fstream>

#include "common/random.h"
#include "experiments/checkpoint/checkpoint.h"
#include "experiments/checkpoint/checkpoint_store.h"
#include "experiments/checkpoint/run_facts.h"
#include "experiments/cluster/exit_code.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

namespace fs = std::filesystem;

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing_support::Program;
using testing_support::ProgramEnd;
using testing_support::TemporaryFolder;
using testing_support::operator+;

using Flags = std::vector<std::string>;

// An epoch has 62 steps.
const Flags kData{"--batch-size=32", "--train-samples=2000", "--test-samples=200"};
const Flags kSmall = kData + Flags{"--model=mlp:784-64-10"};

std::string checkpoints_of(const Program& program) { return program.output() / "checkpoints"; }

// The weights that an unbroken run comes to.
std::vector<float> unbroken(const Flags& flags) {
  Program program(flags);
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  return program.weights();
}

// The run goes on from what lies at `from`.
std::vector<float> resumed(const Flags& flags, const std::string& from, nlohmann::json* summary = nullptr) {
  Program program(flags + Flags{"--resume=" + from});
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  if (summary != nullptr) *summary = program.summary();
  return program.weights();
}

bool has_checkpoint_of(const Program& program, std::int64_t at_least) {
  const std::vector<std::int64_t> steps = CheckpointStore(checkpoints_of(program)).steps();
  return !steps.empty() && steps.front() >= at_least;
}

// Until a checkpoint of step `at_least` is there; then all of it is killed.
void break_off(Program& program, std::int64_t at_least) {
  ASSERT_TRUE(program.wait_until("a checkpoint is there", [&] { return has_checkpoint_of(program, at_least); }));
  program.signal(SIGKILL);
  program.wait();
  EXPECT_TRUE(program.all_gone_within(std::chrono::seconds(10)));
}

// `flags` and a number of steps: one run is broken off and taken up again, and comes to what another comes to.
void expect_equal_to_unbroken(const Flags& flags, std::int64_t steps, std::int64_t every) {
  Program broken(flags + Flags{"--steps=1000000", fmt::format("--checkpoint-every={}", every)});
  break_off(broken, every);
  const std::vector<std::int64_t> there = CheckpointStore(checkpoints_of(broken)).steps();
  ASSERT_FALSE(there.empty());
  const std::string total = fmt::format("--steps={}", there.front() + steps);
  nlohmann::json summary;
  const std::vector<float> weights = resumed(flags + Flags{total}, broken.output(), &summary);
  EXPECT_EQ(summary["resumed_from"]["step"], there.front());
  EXPECT_GT(weights.size(), 0u);
  EXPECT_EQ(weights, unbroken(flags + Flags{total}));
}

TEST(Resume, InTheMidstOfAnEpochEqualsAnUnbrokenRun) { expect_equal_to_unbroken(kSmall, 100, 25); }

// The column of evals.csv, as numbers.
std::vector<double> numbers(const Program& program, const std::string& column) {
  std::vector<double> values;
  for (const std::string& cell : program.column("evals.csv", column)) values.push_back(std::stod(cell));
  return values;
}

TEST(Resume, CountsSamplesAndTimeFromTheBeginningOfTraining) {
  for (const Flags& mode : {Flags{"--mode=local"}, Flags{"--mode=allreduce"},
                            Flags{"--mode=ps", "--consistency=sync", "--drop-last=off"}, Flags{"--mode=ps"}}) {
    // Half an epoch of 31 or 32 steps in, so that the last batch counts with the epoch.
    const Flags flags = kSmall + mode + Flags{"--steps=80", "--evaluate-every=20", "--checkpoint-every=40"};
    Program whole(flags);
    ASSERT_EQ(whole.wait().exit_code, 0) << whole.errors();
    const std::string from = checkpoints_of(whole) + "/" + checkpoint_name(40);
    if (!fs::exists(from)) continue;  // under async, which takes it when it can
    Program resumed(flags + Flags{"--resume=" + from});
    ASSERT_EQ(resumed.wait().exit_code, 0) << resumed.errors();
    const std::vector<double> steps = numbers(resumed, "step"), samples = numbers(resumed, "samples_seen");
    ASSERT_FALSE(samples.empty());
    const nlohmann::json before = resumed.summary()["resumed_from"];
    EXPECT_GT(before["samples"], 0);
    EXPECT_GT(before["seconds"], 0);
    for (const double time : numbers(resumed, "training_s")) EXPECT_GT(time, before["seconds"].get<double>());
    EXPECT_EQ(numbers(whole, "samples_seen").back(), samples.back()) << mode.back();
    EXPECT_EQ(numbers(whole, "step").back(), steps.back()) << mode.back();
  }
}

TEST(Resume, LeavesNoPartsOfCheckpointsAndKeepsTheLastOne) {
  Program program(kSmall +
                  Flags{"--mode=ps", "--consistency=sync", "--servers=2", "--steps=300", "--checkpoint-every=1"});
  ASSERT_EQ(program.wait().exit_code, 0) << program.errors();
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(checkpoints_of(program))) {
    names.push_back(entry.path().filename().string());
  }
  EXPECT_THAT(names, Not(testing::Contains(testing::EndsWith(".part"))));
  EXPECT_EQ(CheckpointStore(checkpoints_of(program)).steps().front(), 300);
}

TEST(Resume, OfEachOptimizerEqualsAnUnbrokenRun) {
  for (const char* optimizer : {"sgd", "momentum", "adagrad"}) {
    expect_equal_to_unbroken(kSmall + Flags{std::string("--optimizer=") + optimizer}, 30, 25);
  }
}

TEST(Resume, WithBatchNormEqualsAnUnbrokenRunInWhatItEvaluatesToo) {
  expect_equal_to_unbroken({"--model=resnet20", "--batch-size=4", "--train-samples=200", "--test-samples=100"}, 12, 5);
}

TEST(Resume, WithTablesEqualsAnUnbrokenRun) {
  expect_equal_to_unbroken({"--model=ncf", "--dataset=zipf-ratings", "--table-rows=2000", "--batch-size=32",
                            "--train-samples=4000", "--test-samples=200"},
                           40, 20);
}

TEST(Resume, OfARunWithStragglersAndBySecondsEqualsAnUnbrokenRun) {
  const Flags flags = kSmall + Flags{"--straggler=0:exp:3", "--lr-schedule=warmup:2,step:3:0.5"};
  Program broken(flags + Flags{"--steps=1000000", "--checkpoint-every=0.2s"});
  break_off(broken, 1);
  const std::int64_t step = CheckpointStore(checkpoints_of(broken)).steps().front();
  const std::string total = fmt::format("--steps={}", step + 30);
  EXPECT_EQ(resumed(flags + Flags{total}, broken.output()), unbroken(flags + Flags{total}));
}

const Flags kAllreduce{"--mode=allreduce", "--workers=2"};

TEST(Resume, OfAnAllreduceEqualsAnUnbrokenRun) {
  for (const char* collective : {"direct", "ring"}) {
    expect_equal_to_unbroken(kSmall + kAllreduce + Flags{std::string("--collective=") + collective}, 30, 25);
  }
}

TEST(Resume, OfAShardedStateEqualsAnUnbrokenRun) {
  for (const char* collective : {"direct", "ring"}) {
    for (const char* stage : {"--stage=1", "--stage=2", "--stage=3"}) {
      expect_equal_to_unbroken(
          kSmall + Flags{"--mode=sharded", "--workers=3", std::string("--collective=") + collective, stage}, 30, 25);
    }
  }
}

// What a codec has kept back and what it draws next, also in padding, which sign leaves values in.
TEST(Resume, OfACompressedAllreduceEqualsAnUnbrokenRun) {
  for (const char* codec : {"int8", "topk:0.05", "randomk:0.1", "sign", "powersgd:2"}) {
    expect_equal_to_unbroken(kSmall + kAllreduce + Flags{std::string("--compress=") + codec}, 20, 15);
  }
}

TEST(Resume, OfWorkersThatAverageTheirWeightsEqualsAnUnbrokenRun) {
  for (const char* how : {"--sync-every=8", "--gossip"}) {
    expect_equal_to_unbroken(kSmall + kAllreduce + Flags{how}, 30, 25);
  }
  expect_equal_to_unbroken(
      kSmall + kAllreduce + Flags{"--sync-every=4", "--outer-momentum=0.9", "--compress=topk:0.05"}, 30, 25);
}

TEST(Resume, OfAnAllreduceWithTablesAndOneWithBatchNormEqualsAnUnbrokenRun) {
  expect_equal_to_unbroken({"--model=ncf", "--dataset=zipf-ratings", "--table-rows=2000", "--batch-size=32",
                            "--train-samples=4000", "--test-samples=200", "--mode=allreduce"},
                           30, 20);
  expect_equal_to_unbroken(
      {"--model=resnet20", "--batch-size=4", "--train-samples=200", "--test-samples=100", "--mode=allreduce"}, 8, 4);
}

const Flags kPs{"--mode=ps", "--workers=2", "--servers=2"};

TEST(Resume, OfSynchronousServersEqualsAnUnbrokenRun) {
  expect_equal_to_unbroken(kSmall + kPs + Flags{"--consistency=sync"}, 30, 25);
  expect_equal_to_unbroken(kSmall + kPs + Flags{"--consistency=local-sgd:5"}, 30, 25);
  expect_equal_to_unbroken(kSmall + kPs + Flags{"--consistency=sync", "--compress=int8", "--compress-answers=off"}, 30,
                           25);
}

// What workers have is not what the servers have, and lies in the checkpoint beside it.
TEST(Resume, OfSynchronousServersWhoseAnswersAreCompressedEqualsAnUnbrokenRun) {
  const Flags sync = kSmall + kPs + Flags{"--consistency=sync"};
  for (const char* codec : {"int8", "topk:0.05", "randomk:0.1", "sign"}) {
    expect_equal_to_unbroken(sync + Flags{std::string("--compress=") + codec}, 20, 15);
  }
  // The head writes the checkpoint, the tail has sent what the workers have.
  expect_equal_to_unbroken(sync + Flags{"--compress=topk:0.05", "--replicas=1"}, 20, 15);
}

TEST(Resume, OfServersWithTablesEqualsAnUnbrokenRun) {
  expect_equal_to_unbroken(
      {"--model=ncf", "--dataset=zipf-ratings", "--table-rows=2000", "--batch-size=32", "--train-samples=4000",
       "--test-samples=200", "--mode=ps", "--consistency=sync", "--servers=2"},
      30, 20);
}

// The chief has the dense weights, and servers, of which there may then be others, have the rows.
TEST(Resume, OfServersOfTablesBesideAnAllreduceEqualsAnUnbrokenRun) {
  const Flags flags{"--model=ncf",          "--dataset=zipf-ratings", "--table-rows=2000", "--batch-size=32",
                    "--train-samples=4000", "--test-samples=200",     "--mode=hybrid"};
  expect_equal_to_unbroken(flags + Flags{"--servers=2"}, 30, 20);
  Program whole(flags + Flags{"--servers=3", "--steps=60", "--checkpoint-every=40"});
  ASSERT_EQ(whole.wait().exit_code, 0) << whole.errors();
  EXPECT_EQ(resumed(flags + Flags{"--servers=1", "--steps=60"}, checkpoints_of(whole) + "/" + checkpoint_name(40)),
            whole.weights());
}

// softmax has a matrix and a bias, so that the third server has nothing to write.
TEST(Resume, OfServersThatHoldNothingEqualsAnUnbrokenRun) {
  const Flags flags = kData + Flags{"--model=softmax", "--sharding=whole", "--mode=ps", "--consistency=sync",
                                    "--workers=2",     "--servers=3",      "--steps=60"};
  Program whole(flags + Flags{"--checkpoint-every=20", "--straggler=all:+5"});
  const ProgramEnd end = whole.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.err + end.out, Not(testing::HasSubstr("no checkpoint of step")));
  EXPECT_EQ(resumed(flags, checkpoints_of(whole) + "/" + checkpoint_name(40)), whole.weights());
}

TEST(Resume, WithAnotherNumberOfServersEqualsAnUnbrokenRun) {
  const Flags sync = kSmall + Flags{"--mode=ps", "--workers=2", "--consistency=sync", "--steps=120"};
  Program broken(sync + Flags{"--servers=2", "--checkpoint-every=20", "--straggler=all:+3"});
  break_off(broken, 40);
  const std::vector<float> expected = unbroken(sync + Flags{"--servers=1"});
  for (const Flags& servers : {Flags{"--servers=1"}, Flags{"--servers=3", "--sharding=tensor"},
                               Flags{"--servers=2", "--shards-per-server=2", "--chunk-bytes=4096"}}) {
    EXPECT_EQ(resumed(sync + servers, broken.output()), expected) << servers[0];
  }
}

// There is no unbroken run to compare with.
TEST(Resume, OfServersWhoseWorkersGoAtTheirOwnPaceGoesOn) {
  for (const char* consistency : {"async", "bounded:2", "softsync:2", "easgd:4"}) {
    const Flags flags = kSmall + kPs + Flags{std::string("--consistency=") + consistency};
    Program broken(flags + Flags{"--steps=1000000", "--checkpoint-every=100", "--straggler=all:+2"});
    break_off(broken, 100);
    const std::int64_t step = CheckpointStore(checkpoints_of(broken)).steps().front();
    nlohmann::json summary;
    EXPECT_FALSE(resumed(flags + Flags{fmt::format("--steps={}", step + 200)}, broken.output(), &summary).empty());
    // What the checkpoint leaves to do of a job that workers share.
    const Result<Checkpoint> checkpoint = Checkpoint::open(checkpoints_of(broken) + "/" + checkpoint_name(step));
    ASSERT_TRUE(checkpoint.ok());
    ResolvedRun config;
    config.mode = Mode::kPs;
    config.workers = 2;
    config.consistency = *ps::Consistency::parse(consistency);
    const std::int64_t done = batches_done(checkpoint->manifest(), config);
    // The coordinator had heard of these; servers have heard of a worker's steps up to its last meeting with them.
    EXPECT_GE(done, 2 * (step - (config.consistency.period() - 1))) << consistency;
    EXPECT_EQ(summary["total_steps"], 2 * (step + 200) - done) << consistency;
  }
}

// Whatever was under way when it was killed: what is there is whole, and leads to the same.
TEST(Resume, AfterKillsAtAnyMomentEqualsAnUnbrokenRun) {
  const Flags flags = kData + Flags{"--model=mlp:784-512-10"};
  const TemporaryFolder copies;
  Random random(7);
  const std::vector<float> expected = unbroken(flags + Flags{"--steps=600"});
  for (int i = 0; i < 4; ++i) {
    Program broken(flags + Flags{"--steps=600", "--checkpoint-every=3", "--straggler=0:+2"});
    const auto at_least = static_cast<std::int64_t>(3 + random.below(60));
    ASSERT_TRUE(broken.wait_until("steps are done", [&] { return has_checkpoint_of(broken, at_least); }));
    kill(broken.process("worker", 0), SIGKILL);
    broken.wait();
    EXPECT_EQ(resumed(flags + Flags{"--steps=600"}, broken.output()), expected);
  }
}

class AFinishedRun : public testing::Test {
 protected:
  // Slow enough for each checkpoint to be written before the next is due, on a busy machine too.
  AFinishedRun() : program_(kSmall + Flags{"--steps=80", "--checkpoint-every=20", "--straggler=0:+20", "--keep=3"}) {
    const ProgramEnd end = program_.wait();
    EXPECT_EQ(end.exit_code, 0) << end.err;
    EXPECT_THAT(end.out, HasSubstr("checkpoints       "));
  }
  ProgramEnd resume(const Flags& flags) {
    Program program(flags + Flags{"--resume=" + program_.output().string()});
    ProgramEnd end = program.wait();
    EXPECT_THAT(program.processes(), IsEmpty());
    return end;
  }

  Program program_;
};

TEST_F(AFinishedRun, HasKeptTheNewestAndSaysSo) {
  EXPECT_THAT(CheckpointStore(checkpoints_of(program_)).steps(), ElementsAre(80, 60, 40));
  const nlohmann::json figures = program_.summary()["checkpoints"];
  EXPECT_EQ(figures["completed"], 4);
  EXPECT_EQ(figures["last_step"], 80);
  EXPECT_GT(figures["stall_seconds"], 0);
}

TEST_F(AFinishedRun, IsTakenUpFromTheOneBeforeWhereTheNewestIsDamagedAndSaysSo) {
  fs::resize_file(fs::path(checkpoints_of(program_)) / "step-000080" / "weights.safetensors", 1000);
  const ProgramEnd end = resume(kSmall + Flags{"--steps=100"});
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.err, HasSubstr("step-000080 is passed over: "));
  EXPECT_THAT(end.out, HasSubstr("step-000060, at step 60"));
}

TEST_F(AFinishedRun, IsNotTakenUpByAnotherRun) {
  const ProgramEnd end = resume(kSmall + Flags{"--steps=100", "--seed=9", "--optimizer=sgd"});
  EXPECT_EQ(end.exit_code, static_cast<int>(ExitCode::kUsage));
  EXPECT_THAT(end.err, HasSubstr("--seed is 1 there and 9 here"));
  EXPECT_THAT(end.err, HasSubstr("--optimizer is adam there and sgd here"));
  EXPECT_THAT(end.out, IsEmpty());
}

TEST_F(AFinishedRun, HasNothingLeftToTrain) {
  const ProgramEnd end = resume(kSmall + Flags{"--steps=80"});
  EXPECT_EQ(end.exit_code, static_cast<int>(ExitCode::kUsage));
  EXPECT_THAT(end.err, HasSubstr("nothing is left to train"));
}

// Writes a key file with a secret that a message, a log or a record must not show.
std::string key_file(const TemporaryFolder& folder, const std::string& secret) {
  const std::string path = folder.path() / secret.substr(0, 4);
  std::ofstream(path) << secret;
  fs::permissions(path, fs::perms::owner_read);
  return path;
}

TEST(Resume, OfAnAuthenticatedRunTakesItsKeyAndNoOther) {
  const TemporaryFolder folder;
  const std::string secret = "mine-0123456789abcdef0123456789abcdef", theirs = "ours-0123456789abcdef0123456789abcdef";
  const std::string key = key_file(folder, secret), other = key_file(folder, theirs);
  const Flags flags = kSmall + Flags{"--mode=ps", "--consistency=sync", "--servers=2", "--workers=2"};
  Program first(flags + Flags{"--steps=40", "--checkpoint-every=20", "--checkpoint-key-file=" + key});
  EXPECT_EQ(first.wait().exit_code, 0);
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(first.output())) {
    if (!entry.is_regular_file()) continue;
    EXPECT_THAT(testing_support::text_of(entry.path()), Not(HasSubstr(secret.substr(5)))) << entry.path();
  }
  const Flags more = flags + Flags{"--steps=50"};
  EXPECT_EQ(resumed(more + Flags{"--checkpoint-key-file=" + key}, first.output()), unbroken(more));
  Program wrong(more + Flags{"--resume=" + first.output().string(), "--checkpoint-key-file=" + other});
  const ProgramEnd refused = wrong.wait();
  EXPECT_EQ(refused.exit_code, static_cast<int>(ExitCode::kUsage));
  EXPECT_THAT(refused.err, HasSubstr("is authenticated by another key"));
  Program keyless(more + Flags{"--resume=" + first.output().string()});
  const ProgramEnd warned = keyless.wait();
  EXPECT_EQ(warned.exit_code, 0);
  EXPECT_THAT(warned.err, HasSubstr("is authenticated, and no key was given"));
}

TEST(Resume, OfWhatIsNotThereSaysSo) {
  Program program(kSmall + Flags{"--resume=/nowhere"});
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, static_cast<int>(ExitCode::kData));
  EXPECT_THAT(end.err, HasSubstr("--resume=/nowhere: /nowhere: holds no checkpoint"));
}

// A small disk of the test's own, in a mount namespace of its own: it goes when the test goes.
bool mount_small_disk(const fs::path& folder) {
  return unshare(CLONE_NEWNS) == 0 && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("none", folder.c_str(), "tmpfs", 0, "size=24m") == 0;
}

TEST(Checkpoints, ThatFindNoRoomOnTheDiskDoNotEndTheRun) {
  const TemporaryFolder disk;
  if (!mount_small_disk(disk.path())) GTEST_SKIP() << "no small disk can be mounted here";
  const fs::path filler = disk.path() / "filler";
  Program program(kData + Flags{"--model=mlp:784-256-10", "--steps=400", "--straggler=0:+5", "--checkpoint-every=20",
                                "--output=" + (disk.path() / "run").string()});
  ASSERT_TRUE(program.wait_until("a checkpoint is there", [&] { return has_checkpoint_of(program, 20); }));
  std::ofstream(filler) << std::string(11 << 20, ' ') << std::flush;
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.err,
              testing::ContainsRegex("no checkpoint of step [0-9]+: .*are free, and .*; that of step [0-9]+ is "
                                     "kept\n"));
  EXPECT_THAT(CheckpointStore(checkpoints_of(program)).steps(), Not(IsEmpty()));
  EXPECT_GT(program.summary()["checkpoints"]["left_out"], 0);
  EXPECT_GT(resumed(kData + Flags{"--model=mlp:784-256-10", "--steps=500"}, program.output()).size(), 0u);
  umount2(disk.path().c_str(), MNT_DETACH);
}

}  // namespace
}  // namespace syncopate::experiments
