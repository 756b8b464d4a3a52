#include "experiments/lab/compare/cell_pool.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>

#include "common/os/readiness.h"
#include "common/os/regular_file.h"
#include "common/os/whole_file.h"
#include "experiments/config/toml.h"
#include "experiments/lab/compare/cell_process.h"
#include "experiments/lab/compare/kept_runs.h"

namespace syncopate::experiments {
namespace {

constexpr std::uint64_t kMostWords = 1 << 20;

// "allreduce-workers-4-1", by which a cell's files are named.
std::string cell_name(const std::string& output) { return std::filesystem::path(output).filename().string(); }

ExitCode exit_code_of_child(const StartedChild& child) {
  int status = 0;
  waitpid(child.pid, &status, 0);
  return WIFEXITED(status) ? static_cast<ExitCode>(WEXITSTATUS(status)) : ExitCode::kInternal;
}

std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of('\n');
  if (end == std::string::npos) return {};
  const std::string whole = text.substr(0, end + 1);
  return whole.substr(whole.rfind('\n') + 1);  // npos + 1 is 0
}

}  // namespace

CellPool::~CellPool() {
  for (Cell& cell : running_) {
    end_child(cell.process);
    reap(cell.process);
  }
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

Status CellPool::expect(const std::vector<ResolvedRun>& runs, const std::string& folder) {
  folder_ = folder + "/cells";
  SYNCOPATE_RETURN_IF_ERROR(make_folder(folder_));
  for (const ResolvedRun& run : runs) {
    SYNCOPATE_RETURN_IF_ERROR(
        write_whole_file(fmt::format("{}/{}.toml", folder_, cell_name(run.output)), to_toml(run)));
    waiting_.push_back(run.output);
    ended_with_.emplace(run.output, std::nullopt);
  }
  return begin_more();
}

Status CellPool::begin_more() {
  while (running_.size() < at_once_ && !waiting_.empty()) {
    const std::string output = waiting_.front();
    const std::string files = fmt::format("{}/{}", folder_, cell_name(output));
    Result<StartedChild> child =
        start_child(cell_command(program_, files + ".toml", output), {}, cell_name(output), files + ".log");
    if (!child.ok()) return child.status();
    running_.push_back({output, std::move(*child)});
    waiting_.pop_front();
  }
  return {};
}

bool CellPool::wait_for_one() {
  std::vector<pollfd> items = {{.fd = interrupts_.handle(), .events = POLLIN, .revents = 0}};
  for (const Cell& cell : running_) {
    items.push_back({.fd = cell.process.handle.descriptor(), .events = POLLIN, .revents = 0});
  }
  ready_before(kNoDeadline, items);
  if (items.front().revents != 0 && interrupts_.take()) return false;
  std::size_t item = 1;
  for (auto cell = running_.begin(); cell != running_.end(); ++item) {
    if (items[item].revents == 0) {
      ++cell;
      continue;
    }
    ended_with_[cell->output] = exit_code_of_child(cell->process);
    cell = running_.erase(cell);
  }
  return true;
}

JobResult CellPool::run(const ResolvedRun& run) {
  const auto failure = [&](ExitCode exit, const std::string& verdict) {
    JobResult result;
    result.config = run;
    result.exit = exit;
    result.verdict = verdict;
    return result;
  };
  const std::optional<ExitCode>& ended_with = ended_with_.at(run.output);
  while (!ended_with) {
    if (const Status begun = begin_more(); !begun.ok()) return failure(exit_code_of(begun), begun.message());
    if (!wait_for_one()) return failure(ExitCode::kInterrupted, "interrupted");
  }
  // The processors have something to do while the files are read.
  if (const Status begun = begin_more(); !begun.ok()) return failure(exit_code_of(begun), begun.message());
  Result<JobResult> result = result_by_files(run.output);
  if (result.ok() && *ended_with == ExitCode::kSuccess && result->exit == ExitCode::kSuccess) return std::move(*result);
  const Result<std::string> words =
      read_regular_file(fmt::format("{}/{}.log", folder_, cell_name(run.output)), kMostWords);
  const std::string line = words.ok() ? last_line(*words) : "";
  return failure(*ended_with == ExitCode::kSuccess ? ExitCode::kInternal : *ended_with,
                 !line.empty()  ? line
                 : !result.ok() ? result.status().message()
                                : fmt::format("its process ended with exit code {}", static_cast<int>(*ended_with)));
}

}  // namespace syncopate::experiments
