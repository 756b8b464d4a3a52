// Runs whose cause is planted, and the command that names it. Most are simulated, so that they are the same at every
// call.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "common/os/core_wait.h"
#include "experiments/lab/why/explained_run.h"
#include "tests/support/one_core.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing_support::Program;
using testing_support::ProgramEnd;
using testing_support::run_program;
using testing_support::TemporaryFolder;
using testing_support::operator+;
using Flags = std::vector<std::string>;

const Flags kPlanted{"--cluster=simulated", "--model=mlp:784-32-10", "--train-samples=2048", "--test-samples=256",
                     "--steps=24",          "--warmup-steps=3",      "--compute=5ms"};
const Flags kSyncPs{"--mode=ps", "--consistency=sync"};

// The flags with these changes: each replaces the one of its name, or takes it away where it has no value.
Flags changed_by(Flags flags, const Flags& changes) {
  for (const std::string& change : changes) {
    const std::string name = change.substr(0, change.find('='));
    std::erase_if(flags, [&](const std::string& flag) { return flag == name || flag.starts_with(name + "="); });
    if (change.find('=') != std::string::npos) flags.push_back(change);
  }
  return flags;
}

// The planted run with these flags, which stand for those of the same name.
Flags planted(const Flags& flags) { return changed_by(kPlanted, flags); }

// What `why --output` says of the run with these flags.
nlohmann::json explained(const Flags& flags) {
  const TemporaryFolder folder;
  Program program(flags);
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  const std::string file = folder.path() / "why.json";
  Program why({"why", program.output().string(), "--output=" + file});
  const ProgramEnd explained = why.wait();
  EXPECT_EQ(explained.exit_code, 0) << explained.err;
  SCOPED_TRACE(explained.out);
  std::istringstream lines(explained.out);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("JSON in ")) EXPECT_LE(line.size(), 80) << line;
  }
  const nlohmann::json json = nlohmann::json::parse(testing_support::text_of(file), nullptr, false);
  if (json.is_discarded()) ADD_FAILURE() << explained.out;
  return json;
}

std::string first_cause(const nlohmann::json& why) {
  return why["causes"].empty() ? "none" : why["causes"][0]["name"].get<std::string>();
}

void expect_that_it_adds_up(const nlohmann::json& why) {
  double sum = why["ideal_ms"];
  for (const nlohmann::json& part : why["parts"]) sum += part["ms"].get<double>();
  EXPECT_NEAR(sum, why["measured_ms"], 1e-6);
}

struct Planted {
  const char* cause;
  Flags flags;
  const char* evidence;
};

void PrintTo(const Planted& planted, std::ostream* out) { *out << planted.cause; }

class Why : public testing::TestWithParam<Planted> {};

TEST_P(Why, NamesThePlantedCauseFirst) {
  const nlohmann::json why = explained(planted(GetParam().flags));
  EXPECT_EQ(first_cause(why), GetParam().cause) << why["summary"];
  EXPECT_THAT(why["summary"], HasSubstr(GetParam().evidence));
  expect_that_it_adds_up(why);
}

INSTANTIATE_TEST_SUITE_P(
    Planted, Why,
    testing::Values(
        Planted{"none", {"--mode=allreduce", "--workers=4", "--compute=20ms"}, "No single cause"},
        Planted{"none", kSyncPs + Flags{"--workers=4", "--servers=2", "--compute=20ms"}, "No single cause"},
        Planted{"none", {"--mode=ps", "--workers=4", "--servers=2", "--compute=20ms"}, "No single cause"},
        Planted{"straggler", {"--mode=allreduce", "--workers=4", "--straggler=2:4x"}, "worker 2 takes 4.0 x"},
        Planted{"straggler", kSyncPs + Flags{"--workers=4", "--straggler=1:+20"}, "worker 1 takes 5.0 x"},
        Planted{"straggler",
                {"--mode=ps", "--consistency=bounded:2", "--work=quota", "--workers=4", "--straggler=3:4x"},
                "worker 3 takes 4.0 x"},
        Planted{"straggler",
                {"--mode=ps", "--consistency=local-sgd:4", "--workers=4", "--straggler=0:4x"},
                "worker 0 takes 4.0 x"},
        Planted{"thin link", {"--mode=allreduce", "--workers=4", "--shape=20mbit"}, "each worker's link of 20 Mb/s: "},
        Planted{"thin link", kSyncPs + Flags{"--workers=2", "--servers=2", "--shape=50mbit"}, "each worker's link"},
        Planted{"incast", kSyncPs + Flags{"--workers=4", "--shape=50mbit"}, "server 0's link"},
        Planted{"slow server", kSyncPs + Flags{"--workers=4", "--servers=3", "--fault=delay:server1@step0+1000s"},
                "server 1 alone is waited for"},
        Planted{"slow server",
                {"--mode=ps", "--work=quota", "--workers=4", "--servers=3", "--fault=delay:server2@step0+1000s"},
                "server 2 alone is waited for"},
        Planted{"hot shard", kSyncPs + Flags{"--workers=4", "--servers=3", "--sharding=whole", "--shape=50mbit"},
                "x the mean"},
        Planted{"servers' work", kSyncPs + Flags{"--workers=4", "--processing=update:10MB/s,sum:10MB/s"},
                "server 0 is busy for"},
        Planted{"tiny batch",
                {"--mode=allreduce", "--workers=4", "--batch-size=1", "--compute=1ms", "--shape=100mbit"},
                "1 sample a worker"}),
    [](const testing::TestParamInfo<Planted>& info) {
      std::string name = fmt::format("{}_{}", info.param.cause, info.index);
      for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
      return name;
    });

// The largest tensors of VGG-16 are three quarters of it.
TEST(Why, NamesTheShardThatHasAModelsLargestTensors) {
  const nlohmann::json why = explained(kSyncPs + Flags{"--cluster=simulated", "--model=profile:vgg16", "--workers=4",
                                                       "--servers=4", "--sharding=whole", "--compute=416ms",
                                                       "--shape=25gbit+50us", "--steps=6", "--warmup-steps=1"});
  EXPECT_EQ(first_cause(why), "hot shard") << why["summary"];
  EXPECT_THAT(why["summary"], HasSubstr("server 1 has 3.06 x the mean"));
}

// A file that was cut behind a line is well-formed.
TEST(Why, SaysThatStepsAreMissing) {
  Program program({"--mode=allreduce", "--workers=2", "--steps=20", "--train-samples=4096", "--test-samples=512"});
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  const std::filesystem::path file = std::filesystem::path(program.output()) / "steps.csv";
  const std::string csv = testing_support::text_of(file);
  std::size_t lines = 0, place = 0;
  while (lines < 31) place = csv.find('\n', place) + 1, ++lines;  // the header and 30 steps
  std::filesystem::resize_file(file, place);
  const Result<ExplainedRun> run = explain_run(program.output());
  ASSERT_TRUE(run.ok()) << run.status().message();
  EXPECT_THAT(paragraph_of(*run), HasSubstr("steps.csv has 30 of the run's 40 steps"));
}

TEST(Why, NamesProcessesThatAreTooManyForTheCores) {
  if (!CoreWait::of_this_thread()) GTEST_SKIP() << "this system does not say how long threads wait for cores";
  const testing_support::OneCore one_core;
  Program program({"--mode=allreduce", "--workers=8", "--steps=60", "--train-samples=8192", "--test-samples=512"});
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  const Result<ExplainedRun> run = explain_run(program.output());
  ASSERT_TRUE(run.ok()) << run.status().message();
  ASSERT_THAT(run->causes, Not(IsEmpty()));
  EXPECT_EQ(run->causes.front().name, "oversubscribed cores") << paragraph_of(*run);
  EXPECT_THAT(run->causes.front().evidence, HasSubstr("8 workers on 1 core"));
}

// What is predicted of a change is what a run with the change comes to.
struct Change {
  const char* cause;
  const char* proposed;  // in the change that is named
  Flags before, changes;
};

void PrintTo(const Change& change, std::ostream* out) { *out << change.cause << ": " << change.proposed; }

class WhyPredicts : public testing::TestWithParam<Change> {};

TEST_P(WhyPredicts, WhatAChangeGains) {
  const nlohmann::json slow = explained(planted(GetParam().before));
  ASSERT_EQ(first_cause(slow), GetParam().cause) << slow["summary"];
  const nlohmann::json& cause = slow["causes"][0];
  EXPECT_THAT(cause["change"].get<std::string>(), HasSubstr(GetParam().proposed));
  const nlohmann::json changed = explained(planted(changed_by(GetParam().before, GetParam().changes)));
  const double predicted = cause["predicted_samples_per_second"], measured = changed["measured_samples_per_second"];
  EXPECT_GT(predicted / measured, 0.85) << slow["summary"];
  EXPECT_LT(predicted / measured, 1.15) << slow["summary"];
}

const Flags kAllreduce{"--mode=allreduce"}, kAsync{"--mode=ps"};
const Flags kResNet{"--model=profile:resnet50", "--compute=150ms", "--steps=8", "--warmup-steps=2"};
const Flags kFourStages{"--model=mlp:784-784-784-784-784-10", "--compute=20ms", "--batch-size=16", "--workers=4",
                        "--pipeline=4"};
const Flags kVgg{"--model=profile:vgg16", "--compute=400ms", "--steps=8", "--warmup-steps=2"};
const Flags kSlowCodec{"--compress=int8", "--processing=encode:5MB/s,decode:5MB/s"};
const Flags kSlowServers{"--processing=update:10MB/s,sum:10MB/s"};
constexpr const char *kFindOut = "find out what slows", *kWiderLinks = "take links of twice the rate",
                     *kEvenly = "spread the bytes evenly", *kLarger = "make larger steps",
                     *kSeldomMeet = "--sync-every=8", *kWaitLess = "--consistency=bounded:k";

INSTANTIATE_TEST_SUITE_P(
    Planted, WhyPredicts,
    testing::Values(
        Change{"straggler", kFindOut, kAllreduce + Flags{"--workers=4", "--straggler=2:4x"}, {"--straggler"}},
        Change{"straggler",
               kFindOut,
               kAllreduce + Flags{"--workers=8", "--collective=ring", "--straggler=2:2x"},
               {"--straggler"}},
        Change{"straggler",
               kFindOut,
               kAllreduce + Flags{"--workers=4", "--sync-every=4", "--straggler=0:4x"},
               {"--straggler"}},
        Change{"straggler", kFindOut, kSyncPs + Flags{"--workers=4", "--straggler=1:+20"}, {"--straggler"}},
        Change{"straggler",
               kFindOut,
               kSyncPs + Flags{"--workers=4", "--servers=2", "--straggler=2:p0.5:+30"},
               {"--straggler"}},
        Change{"straggler",
               kFindOut,
               {"--mode=ps", "--consistency=bounded:2", "--work=quota", "--workers=4", "--straggler=3:4x"},
               {"--straggler"}},
        Change{"straggler",
               kFindOut,
               {"--mode=ps", "--consistency=local-sgd:4", "--workers=4", "--straggler=0:4x"},
               {"--straggler"}},
        Change{"thin link", kWiderLinks, kAllreduce + Flags{"--workers=4", "--shape=20mbit"}, {"--shape=40mbit"}},
        Change{"thin link",
               kWiderLinks,
               kAllreduce + Flags{"--workers=8", "--collective=tree", "--shape=20mbit"},
               {"--shape=40mbit"}},
        Change{"thin link",
               kWiderLinks,
               kAllreduce + Flags{"--workers=8", "--collective=direct", "--shape=50mbit"},
               {"--shape=100mbit"}},
        Change{"thin link",
               kWiderLinks,
               kAllreduce + Flags{"--workers=8", "--collective=halving-doubling", "--shape=50mbit+1ms"},
               {"--shape=100mbit+1ms"}},
        Change{"thin link",
               kWiderLinks,
               kAllreduce + Flags{"--workers=6", "--collective=auto", "--shape=50mbit+2ms"},
               {"--shape=100mbit+2ms"}},
        Change{
            "thin link", kWiderLinks, kAllreduce + kResNet + Flags{"--workers=8", "--shape=1gbit"}, {"--shape=2gbit"}},
        Change{"thin link",
               kWiderLinks,
               kAllreduce + Flags{"--workers=8", "--fabric=racks:2,oversubscription:8", "--shape=100mbit"},
               {"--fabric=racks:2,oversubscription:4"}},
        Change{"thin link",
               kWiderLinks,
               kSyncPs + Flags{"--workers=2", "--servers=2", "--shape=50mbit"},
               {"--shape=100mbit"}},
        Change{"thin link",
               kWiderLinks,
               kSyncPs + kResNet + Flags{"--workers=8", "--servers=4", "--shape=5gbit"},
               {"--shape=10gbit"}},
        Change{"thin link",
               kWiderLinks,
               kAsync + Flags{"--workers=2", "--servers=2", "--shape=50mbit"},
               {"--shape=100mbit"}},
        Change{"thin link", kWiderLinks, kAsync + Flags{"--workers=4", "--shape=50mbit"}, {"--shape=100mbit"}},
        Change{"other communication",
               kLarger,
               kAllreduce + Flags{"--workers=8", "--hosts=a:4,b:4", "--shape=50mbit"},
               {"--batch-size=128", "--compute=10ms", "--train-samples=8192"}},
        Change{"incast", "--servers=2", kSyncPs + Flags{"--workers=4", "--shape=50mbit"}, {"--servers=2"}},
        Change{
            "incast", "--servers=4", kSyncPs + Flags{"--workers=8", "--servers=2", "--shape=100mbit"}, {"--servers=4"}},
        Change{"incast",
               "--servers=2",
               kAsync + Flags{"--workers=8", "--consistency=bounded:3", "--shape=50mbit"},
               {"--servers=2"}},
        Change{"incast",
               "--servers=4",
               kAsync + kResNet + Flags{"--workers=8", "--servers=2", "--shape=5gbit"},
               {"--servers=4"}},
        Change{"slow server",
               kFindOut,
               kSyncPs + Flags{"--workers=4", "--servers=3", "--fault=delay:server1@step0+1000s"},
               {"--fault"}},
        Change{"slow server",
               kFindOut,
               kAsync + Flags{"--work=quota", "--workers=4", "--servers=3", "--fault=delay:server2@step0+1000s"},
               {"--fault"}},
        Change{"hot shard",
               kEvenly,
               kSyncPs + Flags{"--workers=4", "--servers=3", "--sharding=whole", "--shape=50mbit"},
               {"--sharding"}},
        Change{"hot shard",
               kEvenly,
               kAsync + Flags{"--workers=4", "--servers=3", "--sharding=whole", "--shape=50mbit"},
               {"--sharding"}},
        Change{"hot shard",
               kEvenly,
               kSyncPs + kVgg + Flags{"--workers=4", "--servers=4", "--sharding=whole", "--shape=25gbit+50us"},
               {"--sharding"}},
        Change{"servers' work", "--servers=2", kSyncPs + kSlowServers + Flags{"--workers=4"}, {"--servers=2"}},
        Change{"servers' work", "--servers=2", kAsync + kSlowServers + Flags{"--workers=4"}, {"--servers=2"}},
        Change{"codec", "or none (--compress)", kAllreduce + kSlowCodec + Flags{"--workers=4"}, {"--compress"}},
        Change{"tiny batch",
               "--batch-size=16",
               kAllreduce + Flags{"--workers=4", "--batch-size=1", "--compute=1ms", "--shape=100mbit"},
               {"--batch-size=16", "--compute=16ms", "--train-samples=8192"}},
        Change{"tiny batch",
               "--batch-size=32",
               kSyncPs + Flags{"--workers=4", "--servers=2", "--batch-size=2", "--compute=1ms", "--shape=100mbit"},
               {"--batch-size=32", "--compute=16ms", "--train-samples=8192"}},
        Change{"messages' delay",
               kLarger,
               kAllreduce + Flags{"--workers=8", "--collective=ring", "--shape=1gbit+5ms"},
               {"--sync-every=2"}},
        Change{"messages' delay",
               kLarger,
               kAllreduce + kVgg + Flags{"--workers=16", "--collective=ring", "--shape=10gbit+1ms"},
               {"--sync-every=2", "--steps=16"}},
        Change{"messages' delay",
               kLarger,
               kSyncPs + Flags{"--workers=4", "--servers=2", "--shape=1gbit+5ms"},
               {"--batch-size=128", "--compute=10ms", "--train-samples=4096"}},
        Change{"stages' messages",
               "--pipeline-schedule=gpipe",
               kAllreduce + kFourStages + Flags{"--shape=1gbit+1ms"},
               {"--pipeline-schedule=gpipe"}},
        Change{"pipeline bubble",
               "--microbatches=16",
               kAllreduce + kFourStages + Flags{"--shape=100gbit+1us"},
               {"--microbatches=16"}},
        Change{"imbalance",
               kSeldomMeet,
               kAllreduce + Flags{"--workers=4", "--straggler=all:exp:5", "--steps=60"},
               {"--sync-every=8"}},
        Change{"imbalance",
               kSeldomMeet,
               kAllreduce + Flags{"--workers=4", "--straggler=all:p0.2:+20", "--steps=60"},
               {"--sync-every=8"}},
        Change{"imbalance",
               kWaitLess,
               kSyncPs + Flags{"--workers=4", "--servers=2", "--straggler=all:p0.2:+20", "--steps=60"},
               {"--consistency=bounded:8", "--work=quota"}}),
    [](const testing::TestParamInfo<Change>& info) {
      std::string name = fmt::format("{}_{}", info.param.cause, info.index);
      for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
      return name;
    });

TEST(Why, SaysWhereTheDifferenceOfTwoRunsWent) {
  const TemporaryFolder folder;
  const std::string even = folder.path() / "even", slow = folder.path() / "slow", file = folder.path() / "why.json";
  const Flags flags = planted({"--mode=allreduce", "--workers=4"});
  ASSERT_EQ(run_program(flags + Flags{"--output=" + even}).exit_code, 0);
  ASSERT_EQ(run_program(flags + Flags{"--straggler=2:4x", "--output=" + slow}).exit_code, 0);
  const ProgramEnd end = run_program({"why", even, slow, "--output=" + file});
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("slow takes 20"));
  EXPECT_THAT(end.out, HasSubstr("Most of that is straggler"));
  const nlohmann::json why = nlohmann::json::parse(testing_support::text_of(file));
  double sum = 0;
  for (const nlohmann::json& part : why["difference"]) sum += part["ms"].get<double>();
  EXPECT_NEAR(sum, why["difference_ms"], 1e-6);
  EXPECT_EQ(first_cause(why["first"]), "none");
  EXPECT_EQ(first_cause(why["second"]), "straggler");
}

TEST(Why, RefusesWhatIsNoFinishedRun) {
  const TemporaryFolder folder;
  const auto refusal = [](const Flags& words) {
    const ProgramEnd end = run_program(words);
    EXPECT_NE(end.exit_code, 0);
    return end.err;
  };
  EXPECT_THAT(refusal({"why"}), HasSubstr("needs the folder of a finished run"));
  EXPECT_THAT(refusal({"why", folder.path() / "nothing"}), HasSubstr("must be the folder of a finished run"));
  EXPECT_THAT(refusal({"why", folder.path()}), HasSubstr("must be the folder of a finished run"));
  EXPECT_THAT(refusal({"why", folder.path(), "--workers=3"}), HasSubstr("--workers"));
}

}  // namespace
}  // namespace syncopate::experiments
