#include "experiments/lab/predict/prediction_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "experiments/config/command_line.h"
#include "experiments/config/commands.h"
#include "experiments/config/help_text.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::StartsWith;

TEST(PredictionLine, ShowsEachCellWithItsErrorAndSaysThatNothingIsSimulated) {
  const Result<std::string> text = prediction_text({"reproduce", "piz-daint"});
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_THAT(*text, AllOf(HasSubstr("Closed form, nothing is simulated: Whole variables"),
                           HasSubstr("Source: feifeibear/"), HasSubstr("A link's rate, 2."), HasSubstr("9219.7"),
                           HasSubstr("calibrated\n"), HasSubstr("predicted cells: median error")));
}

TEST(PredictionLine, ShowsAllTablesAndThenTheirErrorsBesideTheirBars) {
  const std::string text = *prediction_text({"reproduce", "all"});
  EXPECT_THAT(text, AllOf(HasSubstr("\nhorovod: Three image models"), ContainsRegex("3.0 % / 6.0 % +holds\n")));
}

TEST(PredictionLine, ListsTheTablesWhereThereIsNoSuchName) {
  EXPECT_THAT(prediction_text({"reproduce", "piz-dain"}).status().message(),
              AllOf(HasSubstr("piz-dain: no such table; there are ring, "),
                    HasSubstr(", all of them (all), and convergence, which trains; did you mean piz-daint?")));
  EXPECT_THAT(prediction_text({"reproduce", "convergance"}).status().message(), HasSubstr("did you mean convergence?"));
  EXPECT_THAT(prediction_text({"reproduce"}).status().message(), HasSubstr("needs the name of one table; there are"));
  EXPECT_THAT(prediction_text({"reproduce", "ring", "x"}).status().message(), HasSubstr("needs the name of one table"));
}

TEST(PredictionLine, IsAStudysThatCarriesItsSizesOn) {
  EXPECT_TRUE(asks_for_other_sizes({"study", "results/x", "--to=workers=8"}));
  EXPECT_TRUE(asks_for_other_sizes({"study", "results/x", "--to", "workers=8"}));
  EXPECT_FALSE(asks_for_other_sizes({"study", "study.toml"}));
  EXPECT_FALSE(asks_for_other_sizes({"compare", "--to=workers=8"}));
  EXPECT_FALSE(asks_for_other_sizes({"study", "--vary=workers=1,2", "--", "train", "--to=workers=8"}));
}

TEST(PredictionLine, SaysThatItsCommandsComeFirst) {
  const char* const line[] = {"syncopate", "--workers=2", "predict"};
  EXPECT_EQ(parse_command_line(3, line).status().message(), "predict: must be the first word, before all options");
}

TEST(PredictionLine, HasItsHelp) {
  for (const char* name : {"reproduce", "predict", "advise"}) {
    const char* const line[] = {"syncopate", name, "--help"};
    const Result<CommandLine> command = parse_command_line(3, line);
    ASSERT_TRUE(command.ok()) << command.status().message();
    EXPECT_EQ(command->action, CommandLine::Action::kHelp);
    EXPECT_EQ(command->topic, name);
    const Result<std::string> text = help_text(name, 80);
    EXPECT_THAT(*text, AllOf(StartsWith(name), HasSubstr("More: --help=predictions")));
    for (const std::string& option : command_named(name)->options) EXPECT_THAT(*text, HasSubstr("--" + option));
    EXPECT_LT(text->size(), help_text("predictions", 80)->size());
  }
}

}  // namespace
}  // namespace syncopate::experiments
