#include "experiments/config/preset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "experiments/config/command_line.h"
#include "experiments/config/resolution.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Result<CommandLine> line_of(std::vector<std::string> words) {
  words.insert(words.begin(), "run_experiment");
  std::vector<const char*> line;
  for (const std::string& word : words) line.push_back(word.c_str());
  return parse_command_line(static_cast<int>(line.size()), line.data());
}

TEST(EveryPreset, IsARunAndSaysWhatIsTheSameAndWhatIsNot) {
  EXPECT_GE(preset_texts().size(), 12u);
  for (const auto& [name, text] : preset_texts()) {
    const Result<Preset> preset = open_preset(std::string(name));
    ASSERT_TRUE(preset.ok()) << name << ": " << preset.status().message();
    EXPECT_THAT(preset->same, Not(IsEmpty())) << name;
    EXPECT_THAT(preset->differs, Not(IsEmpty())) << name;
    const Result<CommandLine> line = line_of({"--like=" + std::string(name)});
    ASSERT_TRUE(line.ok()) << name << ": " << line.status().message();
    EXPECT_THAT(to_text(*line->like), AllOf(HasSubstr("  the same "), HasSubstr("  not the same  "))) << name;
  }
}

// All but the guide's first model say how replicas agree, and nothing of the job.
TEST(EveryPreset, IsARowOfAComparison) {
  for (const auto& [name, text] : preset_texts()) {
    const Result<CommandLine> line = line_of({"compare", "--modes=local,like:" + std::string(name)});
    EXPECT_EQ(line.ok(), name != "keras-guide") << name << ": " << line.status().message();
  }
  EXPECT_THAT(line_of({"compare", "--modes=like:keras-guide"}).status().message(),
              HasSubstr("which all rows of a comparison share"));
}

TEST(Preset, IsBelowWhatIsGiven) {
  const Result<CommandLine> line = line_of({"--like=horovod", "--collective=tree", "--workers=3"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_EQ(line->config.collective, CollectiveKind::kTree);
  EXPECT_EQ(line->config.workers, 3);
  EXPECT_TRUE(line->config.lr_schedule.linear_scaling);
  EXPECT_EQ(line->config.mode, Mode::kAllreduce);
}

TEST(Preset, IsNamedWhereItDoesNotFitWhatIsGiven) {
  EXPECT_THAT(line_of({"--like=horovod", "--mode=ps"}).status().message(), HasSubstr("(--like=horovod sets"));
  EXPECT_THAT(line_of({"--like=horovd"}).status().message(), HasSubstr("did you mean horovod?"));
  EXPECT_THAT(line_of({"compare", "--like=horovod"}).status().message(), HasSubstr("--modes=local,like:horovod"));
  EXPECT_THAT(line_of({"study", "--like=horovod", "--vary=workers=1,2"}).status().message(),
              HasSubstr("--modes=local,like:horovod"));
}

TEST(Preset, OfDiLoCoMeetsAsItsPaperSays) {
  const Result<CommandLine> line = line_of({"--like=diloco", "--workers=8"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  const ResolvedRun run = presumed(line->config);
  EXPECT_EQ(run.sync_every, 500);
  const std::optional<allreduce::OuterMomentum> outer = outer_options_of(run).momentum;
  ASSERT_TRUE(outer);
  EXPECT_FLOAT_EQ(outer->momentum, 0.9F);
  EXPECT_DOUBLE_EQ(outer->rate, 0.7);
  EXPECT_TRUE(outer->nesterov);
}

// The rates and the workers are the comparison's.
TEST(Preset, LeavesToAComparisonWhatAllRowsShare) {
  const Result<CommandLine> line = line_of({"compare", "--workers=4", "--modes=like:horovod,like:zero,like:byteps"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  for (const ComparedRun& run : line->runs) {
    EXPECT_FALSE(run.config.lr_schedule.linear_scaling);
    EXPECT_EQ(run.config.workers, 4);
  }
  EXPECT_EQ(line->runs[1].config.stage, 2);
  EXPECT_EQ(line->runs[2].config.consistency.to_string(), "sync");
}

TEST(Preset, IsReadFromAFileOfOnesOwn) {
  const testing_support::TemporaryFolder folder;
  const std::string file = folder.path() / "ours.toml";
  const auto written = [&](const char* text) {
    std::ofstream(file) << text;
    return open_preset(file);
  };
  const Result<Preset> preset = written("about = \"our cluster\"\nsame.wire = \"tcp\"\nmode = \"ps\"\nservers = 3\n");
  ASSERT_TRUE(preset.ok()) << preset.status().message();
  EXPECT_EQ(preset->options.at("servers"), "3");
  EXPECT_EQ(line_of({"--like=" + file})->config.servers, 3);
  EXPECT_THAT(written("mode = \"ps\"\n").status().message(), HasSubstr("has no about"));
  EXPECT_THAT(written("about = \"nothing\"\n").status().message(), HasSubstr("sets no option"));
  EXPECT_THAT(written("about = \"x\"\nmood = \"ps\"\n").status().message(), HasSubstr("mood"));
  EXPECT_THAT(open_preset("missing.toml").status().message(), HasSubstr("missing.toml"));
}

}  // namespace
}  // namespace syncopate::experiments
