// Whatever is given to submit is in what it prints, or is refused by name: held for every option that there is.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>

#include "experiments/cluster/plan/command_environment.h"
#include "experiments/config/options/option_table.h"
#include "experiments/config/resolution.h"
#include "experiments/config/submit_line.h"
#include "experiments/lab/submit/submission_text.h"
#include "tests/experiments/config/typed_line.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing::AnyOf;
using testing::Contains;
using testing::HasSubstr;
using testing::StartsWith;
using Words = std::vector<std::string>;

Result<CommandLine> parse_words(const Words& words) {
  std::vector<const char*> flags;
  for (const std::string& word : words) flags.push_back(word.c_str());
  return parse(flags);
}

// Returns what is printed, without the comment that repeats the line.
std::string printed(const CommandLine& line) {
  CommandLine untyped = line;
  untyped.typed = "";
  return submission_text(untyped, "/opt/syncopate");
}

// Returns a value that the option takes and that is not its usual one; empty for a switch, none if nothing here is one.
std::optional<std::string> some_value_of(const OptionSpec& option) {
  if (option.placeholder.empty()) return "";
  static const testing_support::TemporaryFolder folder;
  const std::string host_file = folder.path() / "hosts";
  std::ofstream(host_file) << "a:2\n";
  const std::map<std::string, std::string> known = {{"workers", "4"},         {"fault", "kill:worker1@step5"},
                                                    {"hosts", "a:2,b:2"},     {"hostfile", host_file},
                                                    {"chunk-bytes", "65536"}, {"fabric", "racks:2"}};
  if (const auto found = known.find(option.name); found != known.end()) return found->second;
  Words candidates;
  for (std::size_t begin = 0, end; begin < option.range.size(); begin = end + 1) {
    end = std::min(option.range.find_first_of(" ,()", begin), option.range.size());
    if (end > begin) candidates.push_back(option.range.substr(begin, end - begin));
  }
  candidates.insert(candidates.end(), {"2", "4", "0.5", "1048576", "1gbit", "sign", "5s", "1epoch", "2:4", "all:+5",
                                       "A=1", "python a.py", "127.0.0.1:8080", "127.0.0.1", "some/path"});
  for (const std::string& candidate : candidates) {
    RunRequest request;
    if (candidate != option.usual && option.set(request, candidate).ok()) return candidate;
  }
  return std::nullopt;
}

struct Form {
  const char* name;
  Words words;
  Words program;
};

const std::vector<Form> kForms = {
    {"job", {"submit", "--kubernetes=job", "--image=i"}, {}},
    {"mpijob", {"submit", "--kubernetes=mpijob", "--image=i"}, {}},
    {"trainer", {"submit", "--kubernetes=trainer", "--image=i"}, {"--", "python", "a.py"}},
    {"slurm", {"submit", "--slurm"}, {}},
    {"slurm, own program", {"submit", "--slurm"}, {"--", "python", "a.py"}},
};

const std::vector<Words> kModes = {{"--mode=ps"}, {"--mode=allreduce"}, {"--mode=local"}};

class EachForm : public testing::TestWithParam<Form> {
 protected:
  // Returns what is printed for a line without further options; none if this form has no such mode. Kept, since each
  // line takes milliseconds to read.
  const std::optional<std::string>& printed_without(const Words& line) {
    const auto [found, is_new] = printed_.try_emplace(line);
    if (is_new) {
      const Result<CommandLine> parsed = parse_words(line);
      if (parsed.ok()) found->second = printed(*parsed);
    }
    return found->second;
  }

  // Prints the line with and without `option`. Records the options that were taken in some mode.
  void try_option(const std::string& name, const std::string& value) {
    const std::string word = value.empty() ? "--" + name : fmt::format("--{}={}", name, value);
    for (const Words& mode : kModes) {
      Words words = GetParam().words;
      if (name != "mode") words.insert(words.end(), mode.begin(), mode.end());
      Words with = words;
      with.push_back(word);
      for (Words* line : {&words, &with})
        line->insert(line->end(), GetParam().program.begin(), GetParam().program.end());
      const std::optional<std::string>& before = printed_without(words);
      if (!before && name != "mode") continue;
      const Result<CommandLine> after = parse_words(with);
      if (!after.ok()) continue;  // said, whatever the line is
      taken_.insert(name);
      if (before) EXPECT_NE(printed(*after), *before) << word << " is dropped in silence, " << mode[0];
    }
  }

  std::set<std::string> taken_;
  std::map<Words, std::optional<std::string>> printed_;
};

TEST_P(EachForm, PassesEveryOptionOnOrRefusesIt) {
  for (const OptionSpec& option : option_table()) {
    const std::optional<std::string> value = some_value_of(option);
    EXPECT_TRUE(value) << "no value of --" << option.name << " is known here";
    if (value) try_option(option.name, *value);
  }
  for (const char* name : {"mode", "workers", "seed", "environment"}) EXPECT_THAT(taken_, Contains(name));
  const bool by_torchrun = GetParam().words[1] == "--kubernetes=trainer";
  const bool is_own = !GetParam().program.empty();
  EXPECT_GT(taken_.size(), by_torchrun ? 8u : is_own ? 12u : 60u);
}

TEST_P(EachForm, PassesEveryOptionOfSubmitOnOrRefusesIt) {
  const std::map<std::string, std::string> values = {
      {"name", "train"},    {"slots", "2"},      {"nodes", "2"},          {"partition", "long"},
      {"account", "mine"},  {"cpus", "3"},       {"memory", "4GiB"},      {"gpus", "1"},
      {"time-limit", "1h"}, {"namespace", "ml"}, {"volume-claim", "data"}};
  for (const OptionSpec& option : submit_options()) {
    if (option.name == "kubernetes" || option.name == "slurm" || option.name == "image") continue;
    ASSERT_TRUE(values.contains(option.name)) << "no value of --" << option.name << " is known here";
    try_option(option.name, values.at(option.name));
  }
  EXPECT_THAT(taken_, Contains("time-limit"));
}

INSTANTIATE_TEST_SUITE_P(Submit, EachForm, testing::ValuesIn(kForms), [](const auto& info) {
  std::string name = info.param.name;
  std::erase_if(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
  return name;
});

TEST(ATrainJob, RefusesByNameWhatTorchrunCannotDo) {
  for (const char* option : {"--elastic", "--trace=5", "--shape=1gbit", "--target-accuracy=0.9", "--repeat=2",
                             "--output=there", "--warmup-steps=3"}) {
    EXPECT_THAT(refusal({"submit", "--kubernetes=trainer", "--image=i", "--mode=allreduce", option, "--", "a"}),
                StartsWith(std::string(option) + ": is for a program that run_experiment starts"));
  }
  EXPECT_THAT(
      refusal({"submit", "--kubernetes=trainer", "--image=i", "--mode=allreduce", "--transport=shm", "--", "a"}),
      StartsWith("--transport=shm:"))
      << "pods share no memory";
}

// A program that run_experiment starts is told in the variable that the table names.
TEST(AProgramOfOnesOwn, IsToldOfEveryOptionWithAVariable) {
  std::set<std::string> told;
  for (const OptionSpec& option : option_table()) {
    if (option.variable.empty()) continue;
    std::optional<std::string> value = some_value_of(option);
    if (option.name == "transport") value = "sockets";
    if (option.name == "mode") value = "ps";  // a program alone is told the same as one that sums among many
    ASSERT_TRUE(value) << option.name;
    for (const char* mode : {"--mode=ps", "--mode=allreduce"}) {
      const auto variables_of = [&](const Words& more) {
        Words words = more;
        if (option.name != "mode") words.insert(words.begin(), mode);
        words.insert(words.end(), {"--", "python", "a.py"});
        const Result<CommandLine> line = parse_words(words);
        std::map<std::string, std::string> variables;
        if (!line.ok()) return variables;
        for (const auto& [name, text] : command_environment(presumed(line->config), 0)) variables[name] = text;
        return variables;
      };
      const auto before = variables_of({});
      const auto after = variables_of({value->empty() ? "--" + option.name : "--" + option.name + "=" + *value});
      if (after.empty()) continue;
      const auto of = [&](const auto& variables) {
        const auto found = variables.find(option.variable);
        return found == variables.end() ? "" : found->second;
      };
      if (of(after) != of(before)) told.insert(option.name);
    }
    EXPECT_THAT(told, Contains(option.name)) << *value;
  }
}

}  // namespace
}  // namespace syncopate::experiments
