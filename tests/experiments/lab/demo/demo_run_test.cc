#include "experiments/lab/demo/demo_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/experiments/lab/demo/small_demo.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing_support::TemporaryFolder;

TEST(DemoFolder, IsTheNewestOfThisDemonstrationThatIsWhole) {
  const TemporaryFolder results;
  const Demo demo = *read_demo("small", kSmallDemo);
  EXPECT_THAT(newest_demo_folder(demo, results.path()).status().message(),
              HasSubstr("demo small: has not been run here"));
  for (const char* name : {"20260301-120000-demo-small", "20260302-120000-demo-small", "20260303-120000-demo-other",
                           "20260304-120000-demo-small", "20260305-120000-compare"}) {
    fs::create_directories(results.path() / name);
    if (std::string(name).find("0304") == std::string::npos) std::ofstream(results.path() / name / "demo.json") << "{}";
  }
  EXPECT_EQ(*newest_demo_folder(demo, results.path()), (results.path() / "20260302-120000-demo-small").string())
      << "the one of the 4th was cut off";
}

TEST(DemoFolder, NamesTheFileThatIsMissingOrMalformed) {
  const TemporaryFolder folder;
  const Demo demo = *read_demo("small", kSmallDemo);
  EXPECT_THAT(read_demo_figures(demo, folder.path()).status().message(), HasSubstr("speed/comparison.json"));
  fs::create_directories(folder.path() / "speed");
  std::ofstream(folder.path() / "speed/comparison.json") << "{\"rows\": [";
  EXPECT_THAT(read_demo_figures(demo, folder.path()).status().message(),
              HasSubstr("speed/comparison.json: is no JSON"));
  std::ofstream(folder.path() / "speed/comparison.json") << "{\"rows\": 7}";
  EXPECT_THAT(read_demo_figures(demo, folder.path()).status().message(), HasSubstr("why-one.json"));
  std::ofstream(folder.path() / "why-one.json") << "[]";
  const Result<DemoFigures> figures = read_demo_figures(demo, folder.path());
  ASSERT_TRUE(figures.ok()) << figures.status().message();
  EXPECT_FALSE(evaluate("growth", *figures)->has_value()) << "what is of another form has no figures";
}

TEST(DemoRuns, EndWithAFailureThatIsNoFaultOfTheirOwn) {
  const TemporaryFolder folder;
  const Demo demo = *read_demo("small", kSmallDemo);
  Console quiet(true);
  std::vector<std::string> asked;
  const DemoRunner runner = [&](const std::vector<std::string>& words) {
    asked = words;
    return ExitCode::kProcessLost;
  };
  const DemoPlace place{.folder = folder.path() / "new", .more = {"--data-dir=d"}};
  EXPECT_EQ(run_demo(demo, place, runner, quiet), ExitCode::kProcessLost);
  ASSERT_GE(asked.size(), 2u);
  EXPECT_EQ(asked.back(), "--output=" + place.folder + "/speed");
  EXPECT_EQ(asked[asked.size() - 2], "--data-dir=d");
}

}  // namespace
}  // namespace syncopate::experiments
