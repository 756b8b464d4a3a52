#include "experiments/lab/demo/demo_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "common/clock.h"
#include "common/os/regular_file.h"
#include "experiments/config/commands.h"
#include "experiments/lab/demo/demo_answers.h"
#include "experiments/lab/demo/demo_text.h"
#include "experiments/lab/report/results_folder.h"

namespace syncopate::experiments {
namespace {

constexpr std::uint64_t kMostAnswerBytes = 1 << 16;
constexpr int kMostColumnsOfText = 100;  // longer lines are hard to read

int columns_of_text() {
  const int columns = terminal_columns();
  return columns == 0 ? kMostColumnsOfText : std::min(columns, kMostColumnsOfText);
}

Result<std::vector<Demo>> all_demos() {
  std::vector<Demo> demos;
  for (const auto& [name, text] : demo_texts()) {
    SYNCOPATE_ASSIGN_OR_RETURN(Demo demo, open_demo(std::string(name)));
    demos.push_back(std::move(demo));
  }
  std::ranges::stable_sort(demos, {}, &Demo::place);
  return demos;
}

void wait_for_enter(Console& console) {
  if (isatty(STDIN_FILENO) == 0 || isatty(STDOUT_FILENO) == 0) return;
  console.say("\npress Enter to run");
  for (int c = std::getchar(); c != '\n' && c != EOF; c = std::getchar()) {
  }
}

Result<bool> check(const Demo& demo, const DemoRequest& request, Console& console) {
  std::string folder = request.output;
  if (folder.empty()) {
    SYNCOPATE_ASSIGN_OR_RETURN(folder, newest_demo_folder(demo, "results"));
  }
  std::error_code ignored;
  if (!std::filesystem::exists(folder + "/demo.json", ignored)) {
    return Status::invalid_argument(
        fmt::format("--output={0}: has no results of demo {1}; run_experiment demo {1} --output={0} makes them", folder,
                    demo.name));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const DemoFigures figures, read_demo_figures(demo, folder));
  const Result<std::string> text = read_input(request.check, kMostAnswerBytes);
  if (!text.ok()) {
    return Status::invalid_argument(
        fmt::format("--check={}: must be a file that can be read ({})", request.check, text.status().message()));
  }
  const Result<std::vector<CheckedAnswer>> answers = check_answers(demo, figures, *text);
  if (!answers.ok()) return answers.status().in(request.check);
  console.say(fmt::format("by the figures in {}:", folder));
  for (const CheckedAnswer& answer : *answers) console.say(answer.line);
  const auto right = std::ranges::count_if(*answers, &CheckedAnswer::is_right);
  console.say(fmt::format("{} of {} are right", right, answers->size()));
  return static_cast<std::size_t>(right) == answers->size();
}

}  // namespace

Result<DemoRequest> parse_demo_line(const std::vector<std::string>& words) {
  SYNCOPATE_ASSIGN_OR_RETURN(const auto read, command_words(words));
  const auto& [names, given] = read;
  if (names.size() > 1) {
    return Status::invalid_argument(fmt::format("demo {}: one at a time; {} is another", names[0], names[1]));
  }
  DemoRequest request;
  if (!names.empty()) request.name = names.front();
  if (const auto output = given.find("output"); output != given.end()) request.output = output->second;
  if (const auto answers = given.find("check"); answers != given.end()) request.check = answers->second;
  for (const char* name : {"data-dir", "device"}) {
    if (given.contains(name)) request.more.push_back(fmt::format("--{}={}", name, given.at(name)));
  }
  if (request.name.empty() && !request.check.empty()) {
    return Status::invalid_argument("--check: needs the name of the demonstration, as in demo straggler --check=FILE");
  }
  return request;
}

ExitCode demo_command(const std::vector<std::string>& words, const DemoRunner& runner, Console& console) {
  const auto fail = [&](const Status& status) {
    console.warn("run_experiment: " + status.message());
    return exit_code_of(status);
  };
  const Result<DemoRequest> request = parse_demo_line(words);
  if (!request.ok()) return fail(request.status());
  if (request->name.empty()) {
    const Result<std::vector<Demo>> demos = all_demos();
    if (!demos.ok()) return fail(demos.status());
    console.say_part(demo_list(*demos, columns_of_text()));
    return ExitCode::kSuccess;
  }
  const Result<Demo> demo = open_demo(request->name);
  if (!demo.ok()) return fail(demo.status());
  if (!request->check.empty()) {
    const Result<bool> right = check(*demo, *request, console);
    if (!right.ok()) return fail(right.status());
    return *right ? ExitCode::kSuccess : ExitCode::kUnequal;
  }
  console.say(question_text(*demo, columns_of_text()));
  wait_for_enter(console);
  std::optional<NewFolder> created;
  if (request->output.empty()) {
    Result<NewFolder> made = NewFolder::create("results/" + demo_folder_name(*demo, calendar_stamp()));
    if (!made.ok()) return fail(made.status());
    created.emplace(std::move(*made));
  }
  const DemoPlace place{
      .folder = created ? created->path() : request->output, .more = request->more, .columns = columns_of_text()};
  return run_demo(*demo, place, runner, console);
}

}  // namespace syncopate::experiments
