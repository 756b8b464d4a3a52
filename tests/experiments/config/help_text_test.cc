#include "experiments/config/help_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "experiments/config/options/option_table.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(HelpText, GivesEveryOptionItsDefaultAndRange) {
  const std::string text = *help_text("all", 100);
  for (const OptionSpec& option : option_table()) {
    EXPECT_THAT(text, HasSubstr("\n  --" + option.name));
    EXPECT_FALSE(option.sentence.empty()) << option.name;
    if (option.placeholder.empty()) continue;
    EXPECT_FALSE(option.usual.empty()) << option.name;
    EXPECT_FALSE(option.range.empty()) << option.name;
  }
  EXPECT_THAT(text, HasSubstr("[processes; 1 to 1024, colocated or colocated+K; default 1]"));
}

TEST(HelpText, BeginsWithAPageThatFitsATerminal) {
  const std::string text = *help_text("", 80);
  EXPECT_LE(lines_of(text).size(), 61u);
  EXPECT_THAT(text, AllOf(HasSubstr("run_experiment --mode=ps --servers=2\n"), HasSubstr("--help=TOPIC")));
  // Each option is named under a topic of its own.
  for (const OptionSpec& option : option_table()) EXPECT_THAT(text, HasSubstr(option.name));
}

TEST(HelpText, ShowsATopicAlone) {
  EXPECT_THAT(*help_text("ps", 80), AllOf(StartsWith("Parameter servers\n"), HasSubstr("--consistency=KIND"),
                                          Not(HasSubstr("--collective=")), HasSubstr("As in\n  run_experiment ")));
  EXPECT_THAT(*help_text("compare", 80), AllOf(HasSubstr("--modes=LIST"), HasSubstr("--vary=")));
}

TEST(HelpText, ShowsAnOptionAlone) {
  EXPECT_THAT(*help_text("straggler", 80), StartsWith("  --straggler=LIST\n      Makes workers slow"));
  EXPECT_THAT(*help_text("trace", 80), StartsWith("  --trace[=STEPS]\n"));
  EXPECT_EQ(*help_text("--straggler", 80), *help_text("straggler", 80));
}

TEST(HelpText, KeepsItsLinesWithinTheTerminal) {
  for (const int columns : {60, 80, 100}) {
    for (const std::string& line : lines_of(*help_text("all", columns))) {
      // Examples, to be copied, and words that are longer than any line stay whole.
      const bool is_one_word = line.find_first_of(' ', line.find_first_not_of(' ')) == std::string::npos;
      if (line.starts_with("  run_experiment") || is_one_word) continue;
      EXPECT_LE(line.size(), static_cast<std::size_t>(columns)) << line;
    }
  }
}

TEST(HelpText, SuggestsWhatWasMeant) {
  EXPECT_EQ(help_text("traning", 80).status().message(),
            "--help=traning: no such topic or option; did you mean training?");
  EXPECT_THAT(*help_text("profile", 80), HasSubstr("The command of that name: run_experiment profile --help"));
  EXPECT_THAT(*help_text("compare", 80), Not(HasSubstr("The command of that name")));
  EXPECT_EQ(help_text("advize", 80).status().message(), "--help=advize: no such topic or option; did you mean advise?");
  EXPECT_EQ(help_text("qqqqqqq", 80).status().message(), "--help=qqqqqqq: no such topic or option; --help lists them");
}

}  // namespace
}  // namespace syncopate::experiments
