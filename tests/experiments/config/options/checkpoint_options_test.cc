// Options of checkpoints, and what a run must share with the one that it goes on from.
#include <tuple>

#include "experiments/checkpoint/carry_over.h"
#include "experiments/checkpoint/run_facts.h"
#include "experiments/config/toml.h"
#include "tests/experiments/config/typed_line.h"
#include "tests/support/resolved.h"

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;

ResolvedRun config_of(std::vector<const char*> flags) {
  const Result<CommandLine> line = parse(std::move(flags));
  EXPECT_TRUE(line.ok()) << line.status().message();
  return line.ok() ? resolved(line->config) : ResolvedRun();
}

TEST(CheckpointOptions, TakeStepsSecondsOrEpochs) {
  EXPECT_EQ(config_of({"--checkpoint-every=200"}).checkpoint_every, (CheckpointInterval{.steps = 200}));
  EXPECT_EQ(config_of({"--checkpoint-every=0.5s", "--keep=3"}).checkpoint_every, (CheckpointInterval{.seconds = 0.5}));
  EXPECT_EQ(config_of({"--checkpoint-every=1epoch"}).checkpoint_every, (CheckpointInterval{.epochs = 1}));
  EXPECT_FALSE(config_of({}).checkpoint_every);
  for (const char* wrong : {"--checkpoint-every=0", "--checkpoint-every=s", "--checkpoint-every=0s",
                            "--checkpoint-every=-1s", "--checkpoint-every=1m", "--checkpoint-every=nans"}) {
    EXPECT_THAT(refusal({wrong}), HasSubstr("interval must be STEPS")) << wrong;
  }
}

TEST(CheckpointOptions, StandInTheRecordButForWhatWasResumed) {
  const std::string record = to_toml(config_of({"--checkpoint-every=30s", "--resume=somewhere"}));
  EXPECT_THAT(record, HasSubstr("checkpoint-every = \"30s\""));
  EXPECT_THAT(record, HasSubstr("keep = 2"));
  EXPECT_THAT(record, testing::Not(HasSubstr("somewhere")));
}

TEST(CheckpointOptions, NameAKeyWhereCheckpointsAreWrittenOrRead) {
  EXPECT_EQ(config_of({"--checkpoint-every=9", "--checkpoint-key-file=key"}).checkpoint_key_file, "key");
  EXPECT_EQ(config_of({"--resume=there", "--checkpoint-key-file=key"}).checkpoint_key_file, "key");
  EXPECT_THAT(refusal({"--checkpoint-key-file=key"}), HasSubstr("--checkpoint-every or --resume"));
  EXPECT_THAT(to_toml(config_of({"--checkpoint-every=9", "--checkpoint-key-file=secret-key"})),
              testing::Not(HasSubstr("key")));
  EXPECT_THAT(from_toml_text("checkpoint-every = 9\ncheckpoint-key-file = \"key\"").status().message(),
              HasSubstr("give --checkpoint-key-file on the command line"));
}

TEST(CheckpointOptions, AreOfOneRun) {
  EXPECT_THAT(refusal({"--checkpoint-every=5", "--repeat=3"}), HasSubstr("leave --repeat out"));
  EXPECT_THAT(refusal({"--resume=there", "--repeat=3"}), HasSubstr("--resume=there"));
}

TEST(CheckpointOptions, GoOnByThemselvesWhereTheyAreFoundAgain) {
  EXPECT_THAT(refusal({"--resume=auto", "--checkpoint-every=1epoch"}), HasSubstr("give --output=DIR"));
  EXPECT_THAT(refusal({"--resume=auto", "--output=there"}), HasSubstr("give --checkpoint-every"));
  EXPECT_EQ(config_of({"--resume=auto", "--output=there", "--checkpoint-every=1epoch"}).resume, "auto");
}

TEST(CheckpointOptions, AreNotForComparisons) {
  EXPECT_THAT(refusal({"compare", "--checkpoint-every=5"}), HasSubstr("give it to one run"));
  EXPECT_THAT(refusal({"compare", "--resume=there"}), HasSubstr("give it to one run"));
  EXPECT_THAT(refusal({"compare", "--checkpoint-key-file=key"}), HasSubstr("give it to one run"));
}

TEST(CheckpointOptions, MeetWhereLocalStepsDo) {
  EXPECT_THAT(refusal({"--mode=ps", "--consistency=local-sgd:8", "--checkpoint-every=12"}), HasSubstr("multiple of 8"));
}

ParamLayout layout() {
  ParamLayout layout;
  layout.add("weight", {3});
  return layout;
}

Status resumed(const ResolvedRun& before, const ResolvedRun& now, const ParamLayout& of_now = layout()) {
  const Manifest manifest{.step = 40, .facts = facts_of(before, layout(), 100)};
  const auto facts = facts_of(now, of_now, 100);
  return plan_carry_over(manifest, {.config = now, .facts = facts, .train_samples = 6400}).status();
}

TEST(ResumeRules, TakesWhatDoesNotDecideWhatIsLearned) {
  EXPECT_TRUE(resumed(config_of({"--mode=ps", "--consistency=sync", "--servers=1"}),
                      config_of({"--mode=ps", "--consistency=sync", "--servers=3", "--sharding=tensor", "--epochs=9",
                                 "--transport=tcp", "--timeout=9", "--checkpoint-every=3"}))
                  .ok());
}

TEST(ResumeRules, RefusesAnotherRunAndSaysWhatDiffers) {
  const Status status = resumed(config_of({"--seed=1"}), config_of({"--seed=2", "--optimizer=sgd", "--batch-size=32"}));
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("--seed is 1 there and 2 here"));
  EXPECT_THAT(status.message(), HasSubstr("--optimizer is adam there and sgd here"));
  EXPECT_THAT(status.message(), HasSubstr("--batch-size is 64 there and 32 here"));
  EXPECT_THAT(status.message(), HasSubstr("--beta1 is 0.9 there and none here"));
}

// A meeting that is under way, and the velocity, are of no use to other meetings.
TEST(ResumeRules, RefusesOtherMeetings) {
  const std::vector<const char*> there{"--mode=allreduce", "--sync-every=8", "--sync-fragments=2", "--sync-overlap=2",
                                       "--outer-momentum=0.5"};
  EXPECT_TRUE(resumed(config_of(there), config_of(there)).ok());
  for (const auto& [place, option, said] :
       {std::tuple(2, "--sync-fragments=1", "--sync-fragments is 2 there and 1 here"),
        std::tuple(3, "--sync-overlap=1", "--sync-overlap is 2 there and 1 here"),
        std::tuple(4, "--outer-momentum=0", "--outer-momentum is 0.5 there and 0 here")}) {
    std::vector<const char*> here = there;
    here[static_cast<std::size_t>(place)] = option;
    EXPECT_THAT(resumed(config_of(there), config_of(here)).message(), HasSubstr(said));
  }
}

TEST(ResumeRules, RefusesAnotherLayout) {
  ParamLayout other = layout();
  other.add("bias", {1});
  const ResolvedRun config = config_of({});
  EXPECT_THAT(resumed(config, config, other).message(), HasSubstr("layout is "));
}

TEST(ResumeRules, RefusesAnotherLengthWhereTheScheduleGoesByIt) {
  const ResolvedRun before = config_of({"--lr-schedule=cosine", "--epochs=2"});
  EXPECT_THAT(resumed(before, config_of({"--lr-schedule=cosine", "--epochs=3"})).message(),
              HasSubstr("200 there and 300 here"));
  EXPECT_TRUE(resumed(before, before).ok());
}

TEST(ResumeRules, RefusesARunThatHasCometoItsEnd) {
  EXPECT_TRUE(check_steps_left(39, 40).ok());
  EXPECT_THAT(check_steps_left(40, 40).message(), HasSubstr("nothing is left"));
}

TEST(Writers, AreThoseWhoHaveWhatOthersHaveNot) {
  using testing::ElementsAre;
  const auto writers = [](std::vector<const char*> flags, bool has_local_state = false) {
    return checkpoint_writers(config_of(std::move(flags)), has_local_state, {0, 1});
  };
  EXPECT_THAT(writers({"--mode=allreduce"}), ElementsAre("worker-0"));
  EXPECT_THAT(writers({"--mode=allreduce"}, true), ElementsAre("worker-0", "worker-1"));
  EXPECT_THAT(writers({"--mode=allreduce", "--compress=int8"}), ElementsAre("worker-0", "worker-1"));
  EXPECT_THAT(writers({"--mode=allreduce", "--sync-every=8"}), ElementsAre("worker-0", "worker-1"));
  EXPECT_THAT(writers({"--mode=ps", "--servers=2", "--shards-per-server=2"}),
              ElementsAre("shard-0", "shard-1", "shard-2", "shard-3"));
  EXPECT_THAT(writers({"--mode=ps", "--consistency=easgd:4"}), ElementsAre("worker-0", "worker-1", "shard-0"));
}

}  // namespace
}  // namespace syncopate::experiments
