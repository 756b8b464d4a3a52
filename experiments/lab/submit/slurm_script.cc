#include "experiments/lab/submit/slurm_script.h"

#include <fmt/format.h>

#include <cmath>

#include "common/text/printable_text.h"
#include "experiments/config/remote_shell.h"
#include "experiments/config/submit_line.h"
#include "experiments/lab/submit/run_words.h"

namespace syncopate::experiments {
namespace {

constexpr std::int64_t kSecondsAMinute = 60;
constexpr std::int64_t kMiB = 1 << 20;
constexpr std::size_t kLongestComment = 1 << 20;

// Slurm sends a signal up to a minute early, but not late; the run also has to end.
constexpr int kToEndSeconds = 30;

std::string directive(const std::string& words) { return fmt::format("#SBATCH {}\n", words); }

std::string amounts(const Submission& submission, int tasks) {
  const int tasks_a_node = (tasks + submission.nodes - 1) / submission.nodes;
  // At most so many: Slurm would fill the first host, and leave one task to the last.
  std::string text =
      directive(fmt::format("--nodes={} --ntasks={} --ntasks-per-node={}", submission.nodes, tasks, tasks_a_node));
  if (submission.thousandths_of_cpus) {
    const std::int64_t cpus = *submission.thousandths_of_cpus / 1000;
    text += directive(fmt::format("--cpus-per-task={}", (cpus + tasks_a_node - 1) / tasks_a_node));
  }
  if (submission.memory_bytes) {
    text += directive(fmt::format("--mem={}M", (*submission.memory_bytes + kMiB - 1) / kMiB));
  }
  if (submission.gpus) text += directive(fmt::format("--gpus-per-node={}", *submission.gpus));
  if (submission.time_limit_seconds) {
    text += directive(fmt::format("--time={}:{:02}", *submission.time_limit_seconds / kSecondsAMinute,
                                  *submission.time_limit_seconds % kSecondsAMinute));
  }
  return text;
}

std::vector<std::string> command_of(const CommandLine& line, const std::string& program) {
  GivenOptions options = line.given;
  if (is_distributed(line.config)) options["launcher"] = name_of(LauncherKind::kSlurm);
  if (line.config.checkpoint_every) {
    options.try_emplace("resume", "auto");
    options.try_emplace("output", "results/" + line.submission->name);
  }
  std::vector<std::string> words{program};
  for (std::string& word : run_words(options)) words.push_back(std::move(word));
  const std::vector<std::string>& own = line.config.command;
  if (!own.empty()) words.push_back("--");
  words.insert(words.end(), own.begin(), own.end());
  return words;
}

}  // namespace

std::string slurm_script(const CommandLine& line, const std::string& program) {
  const Submission& submission = *line.submission;
  const std::string& name = submission.name;
  const bool goes_on = line.config.checkpoint_every.has_value();
  std::string text = fmt::format("#!/bin/sh\n# {}\n", printable("Made by: " + line.typed, kLongestComment));
  text += fmt::format("# Start{}:\n#   sbatch {}.sbatch\n", goes_on ? ", and go on after the time limit" : "", name);
  text += fmt::format("# Watch:\n#   tail -F {}.out\n", name);
  text += fmt::format("# Stop{}:\n#   scancel --name={}\n", goes_on ? ", after a last checkpoint" : "", name);
  text += directive(fmt::format("--job-name={0} --output={0}.out --open-mode=append", name));
  if (submission.partition) text += directive("--partition=" + *submission.partition);
  if (submission.account) text += directive("--account=" + *submission.account);
  text += amounts(submission, tasks_of(line.config));
  if (goes_on) {
    const int seconds = kToEndSeconds + static_cast<int>(std::ceil(line.config.grace_seconds));
    text += directive(fmt::format("--requeue --signal=B:TERM@{}", seconds));
  } else {
    text += directive("--no-requeue");
  }
  text += "exec";
  for (const std::string& word : command_of(line, program)) text += " " + quoted(word);
  return text + "\n";
}

}  // namespace syncopate::experiments
