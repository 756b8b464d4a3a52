#include "experiments/cluster/command/command_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <filesystem>
#include <utility>

#include "experiments/cluster/command/command_start.h"
#include "experiments/cluster/plan/command_environment.h"

namespace syncopate::experiments {
namespace {

std::string log_file_of(const CommandStart& start) { return start.log_directory + "/" + log_name_of(start.process); }

std::string step_file_of(const CommandStart& start) {
  return fmt::format("{}/worker-{}.steps", start.log_directory, start.process.rank);
}

void correct(StepFileEntry& entry, Duration offset) {
  if (auto* step = std::get_if<StepRecord>(&entry)) step->end -= offset;
  if (auto* told = std::get_if<ToldEvaluation>(&entry)) told->taken -= offset;
  if (auto* trace = std::get_if<ToldTrace>(&entry)) {
    for (TraceEvent& event : trace->events) {
      event.begin -= offset;
      event.end -= offset;
    }
  }
}

}  // namespace

Result<std::unique_ptr<CommandProcess>> CommandProcess::start_here(const CommandStart& start, int master_port) {
  const std::string step_file = step_file_of(start);
  auto environment = start.process.environment;
  environment.emplace_back(kMasterPort, fmt::to_string(master_port));
  environment.emplace_back(kStepFile, std::filesystem::absolute(step_file).string());
  SYNCOPATE_ASSIGN_OR_RETURN(StartedChild child, start_child(start_line_of(start.program, start.process.command),
                                                             environment, start.process.name(), log_file_of(start)));
  return std::unique_ptr<CommandProcess>(new CommandProcess(std::move(child), step_file, std::nullopt));
}

Result<std::unique_ptr<CommandProcess>> CommandProcess::start_below_relay(const CommandStart& start,
                                                                          const SecretText& secret) {
  const ProcessSpec& process = start.process;
  SYNCOPATE_ASSIGN_OR_RETURN(RelayConnection relay, RelayConnection::open(log_file_of(start), step_file_of(start)));
  std::vector<std::string> line = command_line_of(start.plan, process, start.program);
  if (!process.remote) line.insert(line.begin(), {start.program, "--guard"});
  const auto environment = process.remote ? decltype(process.environment)() : process.environment;
  SYNCOPATE_ASSIGN_OR_RETURN(StartedChild child, start_child(line, environment, process.name(), log_file_of(start),
                                                             secret.view(), relay.output()));
  relay.close_output();
  fcntl(child.input.get(), F_SETFL, O_NONBLOCK);
  child.is_remote_shell = process.remote;
  child.is_guard = true;
  return std::unique_ptr<CommandProcess>(
      new CommandProcess(std::move(child), step_file_of(start), std::optional(std::move(relay))));
}

CommandProcess::CommandProcess(StartedChild child, std::string step_file, std::optional<RelayConnection> relay)
    : child_(std::move(child)), step_file_(std::move(step_file)), steps_(step_file_), relay_(std::move(relay)) {}

CommandProcess::~CommandProcess() {
  kill(false);
  if (!has_ended_) reap(child_);
  std::error_code ignored;
  std::filesystem::remove(step_file_, ignored);
}

void CommandProcess::add_handles(std::vector<pollfd>& items) const {
  if (has_ended_) return;
  items.push_back({.fd = child_.handle.descriptor(), .events = POLLIN, .revents = 0});
  if (relay_) items.push_back({.fd = relay_->handle(), .events = POLLIN, .revents = 0});
}

void CommandProcess::exchange(const Clock& clock) {
  if (!relay_ || has_ended_) return;
  if (const Status status = relay_->exchange(child_.input.get(), clock); failure_.ok()) failure_ = status.in(name());
}

void CommandProcess::begin(const RelayReady& rank_0) {
  RelayConnection::send(child_.input.get(), RelayStart{rank_0.address, rank_0.port});
}

std::optional<ProcessEnd> CommandProcess::take_end(const Clock& clock) {
  siginfo_t info{};
  if (has_ended_ || waitid(P_PID, static_cast<id_t>(child_.pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid == 0) {
    return std::nullopt;
  }
  // Its process group has its number, which is nobody else's until it is reaped. That of a guard has the relay, too,
  // which ends what is below it when the guard ends.
  if (!relay_) ::kill(-child_.pid, SIGKILL);
  rusage usage{};
  int status = 0;
  wait4(child_.pid, &status, 0, &usage);
  exchange(clock);
  has_ended_ = true;
  if (!relay_) peak_memory_ = usage.ru_maxrss * 1024;
  ProcessEnd end = end_of(status);
  // A shell in front of the program says it by its exit code.
  const bool was_killed = end.signal == SIGKILL || end.exit_code == 128 + SIGKILL;
  end.out_of_memory = was_killed && !child_.is_remote_shell && oom_kills_.explain_one();
  if (end.has_last_words()) end.last_words = last_words_of(child_.log_file);
  return end;
}

// A relay says how its program has ended. If it could not, its own end has to say it, or that of the remote shell.
ProcessEnd CommandProcess::end_of(int status) {
  if (!relay_ || !relay_->end()) return experiments::end_of(status, child_.is_remote_shell);
  peak_memory_ = relay_->end()->peak_memory;
  return {.exit_code = relay_->end()->exit_code, .signal = relay_->end()->signal};
}

Result<std::vector<StepFileEntry>> CommandProcess::take_told() {
  Result<std::vector<StepFileEntry>> entries = steps_.read();
  if (!entries.ok() || entries->empty() || !child_.is_remote_shell) return entries;
  const std::optional<ClockOffset::Estimate> clock = relay_->clock();
  if (!clock) return Status::data_loss(fmt::format("{} tells of steps before it could begin", name()));
  for (StepFileEntry& entry : *entries) correct(entry, clock->offset);
  clock_uncertainty_ = clock->uncertainty;
  return entries;
}

void CommandProcess::interrupt() {
  if (has_ended_) return;
  if (relay_) return RelayConnection::send(child_.input.get(), RelayInterrupt());
  ::kill(-child_.pid, SIGTERM);
}

void CommandProcess::kill(bool shell) {
  if (has_ended_) return;
  end_child(child_);
  if (!relay_) ::kill(-child_.pid, SIGKILL);
  if (!relay_ || shell) ::kill(child_.pid, SIGKILL);  // it may not be in its group yet
}

}  // namespace syncopate::experiments
