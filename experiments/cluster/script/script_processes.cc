#include "experiments/cluster/script/script_processes.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "common/os/readiness.h"
#include "experiments/cluster/command/command_start.h"
#include "experiments/cluster/command/free_port.h"
#include "experiments/cluster/coordinator/verdict.h"
#include "experiments/cluster/plan/command_environment.h"
#include "experiments/cluster/starter.h"

namespace syncopate::experiments {
namespace {

using nlohmann::json;

constexpr std::chrono::milliseconds kTick{100};

}  // namespace

ScriptProcesses::~ScriptProcesses() {
  if (!child_) return;
  kill();
  reap(*child_);
}

void ScriptProcesses::kill() {
  // Ranks are in the group of the process that has begun the script, and end where their connection does.
  ::kill(-child_->pid, SIGKILL);
  ::kill(child_->pid, SIGKILL);  // it may not be in its group yet
}

std::string ScriptProcesses::log_of(int rank) const {
  return fmt::format("{}/script-{}.log", start_.log_directory, rank);
}

Status ScriptProcesses::begin() {
  SYNCOPATE_ASSIGN_OR_RETURN(const int port, free_port("127.0.0.1"));
  const ProcessSpec& first = start_.plan.processes.front();
  EnvironmentVariables environment = first.environment;
  environment.emplace_back(kMasterPort, fmt::to_string(port));
  environment.emplace_back("SYNCOPATE_SIMULATED", door_.address());
  environment.emplace_back("SYNCOPATE_RANK_LOGS", std::filesystem::absolute(start_.log_directory).string());
  SYNCOPATE_ASSIGN_OR_RETURN(
      child_, start_child(start_line_of(start_.program, first.command), environment, first.name(), log_of(0)));
  return {};
}

// Connections.

Result<bool> ScriptProcesses::take_arrival(ScriptLink& link) {
  SYNCOPATE_RETURN_IF_ERROR(link.read());
  const std::optional<json> line = link.take();
  if (!line) return link.has_ended();
  if (text_in(*line, "is") == "parent") {
    parent_.emplace(std::move(link));
    return true;
  }
  const int rank = whole_number_in(*line, "rank", -1, start_.config.workers, -1);
  if (text_in(*line, "is") != "rank" || rank < 0 || rank >= start_.config.workers) return unknown_words(rank, *line);
  std::vector<SharedMemory> memory = link.take_memory();
  if (memory.size() != 2) return Status::data_loss(fmt::format("rank {} of the script gives no memory", rank));
  arrived_.push_back({.rank = rank, .link = std::move(link), .memory = std::move(memory)});
  return true;
}

Status ScriptProcesses::look() {
  while (std::optional<ScriptLink> link = door_.accept()) unknown_.push_back(std::move(*link));
  for (std::size_t i = 0; i < unknown_.size();) {
    SYNCOPATE_ASSIGN_OR_RETURN(const bool is_taken, take_arrival(unknown_[i]));
    if (is_taken) {
      unknown_.erase(unknown_.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  if (!parent_) return {};
  SYNCOPATE_RETURN_IF_ERROR(parent_->read());
  while (const std::optional<json> line = parent_->take()) {
    ended_[whole_number_in(*line, "rank", -1, start_.config.workers, -1)] =
        whole_number_in(*line, "status", 0, std::numeric_limits<int>::max(), 0);
  }
  return {};
}

bool ScriptProcesses::wait(std::span<const ScriptLink* const> links, TimePoint deadline) {
  std::vector<pollfd> items;
  const auto add = [&items](int handle) { items.push_back({.fd = handle, .events = POLLIN, .revents = 0}); };
  add(interrupts_.handle());
  add(door_.handle());
  for (const ScriptLink& link : unknown_) add(link.handle());
  if (parent_ && !parent_->has_ended()) add(parent_->handle());
  for (const ScriptLink* link : links) add(link->handle());
  ready_before(std::min(deadline, clock_.now() + kTick), items);
  return items.front().revents == 0;
}

// Ends.

Status ScriptProcesses::check_begins() const {
  siginfo_t info{};
  if (parent_ || waitid(P_PID, static_cast<id_t>(child_->pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid == 0) {
    return {};
  }
  const bool has_exited = info.si_code == CLD_EXITED;
  if (has_exited && info.si_status == kNotStarted) return Status::invalid_argument(last_words_of(log_of(0)));
  if (!has_exited || info.si_status != 0) return failure_of(0, has_exited ? info.si_status << 8 : info.si_status);
  return Status::invalid_argument(
      fmt::format("{} ended well, and its ranks did not come: a simulated run needs a script that imports torch 2.5 or "
                  "later, or syncopate.torch, where Syncopate's package is installed (docs/pytorch.md)",
                  command_of(start_.config)));
}

Status ScriptProcesses::failure_of(int rank, int status) const {
  ProcessEnd end = experiments::end_of(status, false);
  if (end.exit_code == 0) return {};
  if (end.has_last_words()) end.last_words = last_words_of(log_of(rank));
  return Status::peer_lost(fmt::format("rank {} of the script {}", rank, describe(end)));
}

Status ScriptProcesses::end_of(int rank) {
  // A process that ends closes its connection before the one that has begun it sees its end.
  const TimePoint deadline = clock_.now() + from_seconds(start_.config.timeout_seconds);
  while (!ended_.contains(rank) && parent_ && !parent_->has_ended() && clock_.now() < deadline) {
    wait({}, deadline);
    SYNCOPATE_RETURN_IF_ERROR(look());
  }
  if (!ended_.contains(rank)) {
    return Status::peer_lost(fmt::format("rank {} of the script is gone, and nothing says why", rank));
  }
  return failure_of(rank, ended_.at(rank));
}

}  // namespace syncopate::experiments
