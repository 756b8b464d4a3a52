#include "experiments/lab/convergence/convergence_plan.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "experiments/config/command_line.h"

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;

std::vector<ConvergenceTable> all_claims() {
  std::vector<ConvergenceTable> tables = {softsync_claim()};
  for (const LabelsData data : {LabelsData::kDigits, LabelsData::kFashionMnist}) {
    tables.push_back(labels_claim(data));
    tables.push_back(deep_labels_claim(data));
  }
  return tables;
}

std::vector<std::string> published(const ConvergenceTable& table, const std::string& name) {
  const auto setting = std::ranges::find(table.settings, name, &ConvergenceSetting::name);
  if (setting == table.settings.end()) return {"no such setting"};
  std::vector<std::string> all;
  for (const PublishedConvergence& one : setting->published) all.push_back(one.text + " " + name_of(one.kind));
  return all;
}

TEST(ConvergencePlan, HasAPublishedFigureAndALineThatIsAcceptedForEachSetting) {
  std::set<std::string> names;
  for (const ConvergenceTable& table : all_claims()) {
    EXPECT_TRUE(names.insert(table.name).second) << table.name << " stands twice";
    for (const ConvergenceSetting& setting : table.settings) {
      EXPECT_FALSE(setting.published.empty()) << table.name << ": " << setting.name;
      std::vector<const char*> line = {"run_experiment"};
      for (const std::string& flag : setting.flags) line.push_back(flag.c_str());
      const Result<CommandLine> command = parse_command_line(static_cast<int>(line.size()), line.data());
      ASSERT_TRUE(command.ok()) << setting.name << ": " << command.status().message();
      EXPECT_EQ(command->config.cluster, ClusterKind::kSimulated);
      EXPECT_TRUE(command->config.compute && command->config.compute->step) << "figures would differ from call to call";
      const ConvergenceSetting& reference = table.settings.at(setting.reference);
      EXPECT_TRUE(reference.name.starts_with("sync")) << reference.name;
    }
  }
}

TEST(ConvergencePlan, ReadsWhatZhangAndOthersSayOfSoftsync) {
  const ConvergenceTable table = softsync_claim();
  EXPECT_THAT(published(table, "sync"), ElementsAre("~18 learns"));
  EXPECT_THAT(published(table, "softsync:1, base rate"), ElementsAre("converges learns"));
  EXPECT_THAT(published(table, "softsync:30, base rate"), ElementsAre("90 (fails) collapses"));
  EXPECT_THAT(published(table, "softsync:30, rate / staleness"), ElementsAre("~18 learns"));
}

// Both files of results have this setting, and they differ.
TEST(ConvergencePlan, ReadsBothOfWhatIsPublishedOfAsyncByLabel) {
  const ConvergenceTable table = labels_claim(LabelsData::kDigits);
  EXPECT_THAT(published(table, "async, labels, 10 workers"), ElementsAre("10.00 collapses", "71.43 falls short"));
  EXPECT_THAT(published(table, "async, random, 10 workers"), ElementsAre("86.92 learns", "84.55 learns"));
  EXPECT_THAT(published(table, "sync, labels, 10 workers"), ElementsAre("85.59 learns", "85.03 learns"));
  EXPECT_THAT(published(deep_labels_claim(LabelsData::kDigits), "async, random, 10 workers"),
              ElementsAre("10.00 collapses"));
}

// The jobs of one table differ in the rule, the parts and the number of workers alone, and are of one size.
TEST(ConvergencePlan, TrainsAsManySamplesInEachSettingByLabel) {
  for (const LabelsData data : {LabelsData::kDigits, LabelsData::kFashionMnist}) {
    for (const ConvergenceSetting& setting : labels_claim(data).settings) {
      std::vector<const char*> line = {"run_experiment"};
      for (const std::string& flag : setting.flags) line.push_back(flag.c_str());
      const RunRequest run = parse_command_line(static_cast<int>(line.size()), line.data())->config;
      const std::int64_t samples =
          run.steps ? *run.steps * *run.workers * *run.batch_size : run.epochs * run.train_samples;
      EXPECT_EQ(samples, 36000) << setting.name;
    }
  }
}

}  // namespace
}  // namespace syncopate::experiments
