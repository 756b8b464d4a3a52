#include "experiments/config/option_words.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "experiments/config/commands.h"
#include "experiments/config/completion.h"
#include "experiments/config/help_text.h"
#include "tests/support/build_paths.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;
using testing_support::TemporaryFolder;
using Words = std::vector<std::string>;

const OptionForms kForms{{"output", {.placeholder = "DIR"}},
                         {"learning-rate", {.placeholder = "RATE"}},
                         {"trace", {"STEPS", "auto"}},
                         {"dry-run", {.placeholder = ""}}};

OptionWords words_read(const Words& words) {
  const Result<OptionWords> result = option_words(words, kForms);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? *result : OptionWords();
}

std::string refusal_of_words(const Words& words) { return option_words(words, kForms).status().message(); }

TEST(OptionWords, TakeTheWordBehindThemAsTheirValue) {
  const OptionWords read = words_read({"compare", "--output", "there", "--dry-run", "here", "--workers=2", "-x"});
  EXPECT_THAT(read.operands, ElementsAre("compare", "here"));
  EXPECT_THAT(read.values,
              UnorderedElementsAre(Pair("output", ElementsAre("there")), Pair("dry-run", ElementsAre("true"))));
  EXPECT_THAT(read.unknown, ElementsAre("--workers=2", "-x"));
  EXPECT_THAT(words_read({"--output=there=", "x"}).values.at("output"), ElementsAre("there="));
  EXPECT_THAT(words_read({"--dry-run=false"}).values.at("dry-run"), ElementsAre("false"));
}

TEST(OptionWords, TakeNumbersBelowZero) {
  EXPECT_THAT(words_read({"--learning-rate", "-0.1", "--learning-rate", "-.5"}).values.at("learning-rate"),
              ElementsAre("-0.1", "-.5"));
}

TEST(OptionWords, TakeNoOptionForAValue) {
  EXPECT_EQ(refusal_of_words({"--output", "--dry-run"}),
            "--output: needs a value, as in --output=DIR (--dry-run is an option of its own)");
  EXPECT_EQ(refusal_of_words({"--output=", "--dry-run"}), refusal_of_words({"--output", "--dry-run"}));
  EXPECT_EQ(refusal_of_words({"--output", "-h"}),
            "--output: needs a value, as in --output=DIR (-h is an option of its own)");
  EXPECT_EQ(refusal_of_words({"--output", "-"}),
            "--output: needs a value, as in --output=DIR (- is an option of its own)");
  EXPECT_EQ(refusal_of_words({"--output="}), "--output: needs a value, as in --output=DIR");
  EXPECT_EQ(refusal_of_words({"--output=", "there"}), "--output: needs a value, as in --output=DIR");
  EXPECT_EQ(refusal_of_words({"--output"}), "--output: needs a value, as in --output=DIR");
  EXPECT_THAT(words_read({"--output=-there"}).values.at("output"), ElementsAre("-there"))
      << "nobody types that by mistake";
}

TEST(OptionWords, MeanSomethingWithoutAValueIfTheyCan) {
  EXPECT_THAT(words_read({"--trace", "--output=there"}).values.at("trace"), ElementsAre("auto"));
  const OptionWords empty = words_read({"--trace=", "3:5"});
  EXPECT_THAT(empty.values.at("trace"), ElementsAre("auto"));
  EXPECT_THAT(empty.operands, ElementsAre("3:5"));
  EXPECT_THAT(words_read({"--trace", "3:5"}).values.at("trace"), ElementsAre("3:5"));
  EXPECT_THAT(words_read({"--trace"}).values.at("trace"), ElementsAre("auto"));
}

TEST(OptionWords, AreGivenOnceWhereOneIsAskedFor) {
  const OptionWords read = words_read({"--output=a", "--output=b", "--trace=1:2"});
  EXPECT_EQ(read.one("output").status().message(), "--output: given 2 times; once is enough");
  EXPECT_EQ(*read.one("trace"), "1:2");
}

TEST(Commands, TakeValuesInBothFormsAndListWhatTheyTake) {
  for (const Command& command : commands()) {
    if (command.has_run) continue;
    for (const std::string& option : command.options) {
      const Words joined{command.name, "--" + option + "=value"}, apart{command.name, "--" + option, "value"};
      for (const Words& words : {joined, apart}) {
        const Result<CommandWords> read = command_words(words);
        ASSERT_TRUE(read.ok()) << read.status().message();
        EXPECT_THAT(read->given, ElementsAre(Pair(option, "value"))) << command.name;
        EXPECT_THAT(read->operands, IsEmpty());
      }
      EXPECT_THAT(command_words(Words{command.name, "--nothing-like-it"}).status().message(),
                  AllOf(HasSubstr(command.name + ": --nothing-like-it: no such option; there are --"),
                        HasSubstr("--" + option)));
    }
  }
  EXPECT_EQ(command_words(Words{"ps", "--all"}).status().message(), "ps: --all: no such option; it takes none");
  EXPECT_THAT(command_words(Words{"why", "--outptu=x"}).status().message(), HasSubstr("did you mean --output?"));
}

TEST(Commands, TakeOptionsThatTheHelpExplains) {
  for (const Command& command : commands()) {
    for (const std::string& option : command.options) {
      EXPECT_TRUE(help_text("--" + option, 80).ok()) << command.name << " --" << option;
    }
  }
}

TEST(Commands, HaveHelpOfTheirOwn) {
  const std::string first = *help_text("", 100);
  for (const Command& command : commands()) {
    EXPECT_THAT(first, HasSubstr("\n  " + command.name + " "));
    EXPECT_THAT(first, HasSubstr(command.sentence));
    ASSERT_TRUE(help_text(command.topic, 80).ok()) << command.name;
    const std::string text = *help_text(command.topic, 80);
    EXPECT_THAT(text, HasSubstr("run_experiment " + command.name)) << "an example";
  }
}

// A table's row as docs/commands.md has it.
std::string row_of(const Command& command) {
  std::string options = command.has_run ? "those of a run" : "";
  for (const std::string& option : command.options) options += (options.empty() ? "`--" : ", `--") + option + "`";
  std::string operands = command.operands;
  for (std::size_t bar = operands.find('|'); bar != std::string::npos; bar = operands.find('|', bar + 2)) {
    operands.insert(bar, 1, '\\');
  }
  return fmt::format("| `{}{}{}` | {} | {} |\n", command.name, operands.empty() ? "" : " ", operands, command.sentence,
                     options.empty() ? "none" : options);
}

TEST(Commands, StandInTheirPageAsTheyAre) {
  const std::string page = testing_support::text_of(testing_support::source_directory() + "/docs/commands.md");
  std::string rows;
  for (const Command& command : commands()) rows += row_of(command);
  EXPECT_THAT(page, HasSubstr(rows)) << "put these rows there:\n" << rows;
}

TEST(Completion, OffersEveryCommandAndItsOptions) {
  const std::string script = *completion_answer({"completion"});
  for (const Command& command : commands()) EXPECT_THAT(script, HasSubstr("    " + command.name + ") options=\""));
  EXPECT_THAT(script, AllOf(HasSubstr("stop) options=\"--help --timeout=\""), HasSubstr(" --workers= ")));
  EXPECT_FALSE(completion_answer({"completion", "zsh"}).ok());
}

// What bash itself offers behind these words, the last of which is being typed.
std::string completed_by_bash(const std::string& words) {
  const TemporaryFolder folder;
  const std::string script = (folder.path() / "script").string(), offers = (folder.path() / "offers").string();
  std::ofstream(script) << *completion_answer({"completion"});
  const std::string line = fmt::format(
      "bash -c 'source {}; compopt() {{ :; }}; COMP_WORDS=(run_experiment {}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - "
      "1)); "
      "_run_experiment; echo \"${{COMPREPLY[@]}}\"' > {}",
      script, words, offers);
  EXPECT_EQ(std::system(line.c_str()), 0);
  return testing_support::text_of(offers);
}

TEST(Completion, IsCarriedOutByBash) {
  EXPECT_EQ(completed_by_bash("rep"), "report reproduce\n");
  EXPECT_EQ(completed_by_bash("stop --t"), "--timeout=\n");
  EXPECT_EQ(completed_by_bash("--serv"), "--servers=\n");
  EXPECT_EQ(completed_by_bash("compare --mod"), "--mode= --model= --modes=\n");
}

}  // namespace
}  // namespace syncopate::experiments
