#include "experiments/cluster/command/command_run.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

#include "common/random.h"
#include "common/step_file.h"
#include "experiments/cluster/command/command_environment.h"
#include "experiments/cluster/command/command_monitor.h"
#include "experiments/cluster/command/command_start.h"
#include "experiments/cluster/launcher/launcher.h"

namespace syncopate::experiments {
namespace {

constexpr int kTickMs = 100;
// What the others may take beyond their own deadline to see that one has failed, and to end.
constexpr Duration kPatience = std::chrono::seconds(10);
// Below the ports that the kernel gives to connections which ask for none.
constexpr int kFirstPort = 20000, kPorts = 12768;
constexpr int kMostTries = 200;

bool is_free(int port) {
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return socket.open() && bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

// Returns a port at which rank 0 can listen. Nothing holds it until then: a program that finds it taken says so.
Result<int> free_port(std::uint64_t seed) {
  Random random(seed, static_cast<std::uint64_t>(getpid()));
  for (int i = 0; i < kMostTries; ++i) {
    const int port = kFirstPort + static_cast<int>(random.below(kPorts));
    if (is_free(port)) return port;
  }
  return Status::resource_exhausted(
      fmt::format("no free port among {} to {} of the loopback interface", kFirstPort, kFirstPort + kPorts - 1));
}

// The lines that are appended to a file.
class NewLines {
 public:
  explicit NewLines(std::string path) : path_(std::move(path)) {}

  // Returns the whole lines that are new; at the end of the run also one that is not whole.
  std::vector<std::string> read(bool is_last) {
    std::ifstream file(path_);
    file.seekg(read_to_);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    std::vector<std::string> lines;
    for (std::size_t end; (end = text.find('\n')) != std::string::npos || (is_last && !text.empty());) {
      end = std::min(end, text.size());
      lines.push_back(text.substr(0, end));
      const std::size_t taken = std::min(end + 1, text.size());
      read_to_ += static_cast<std::streamoff>(taken);
      text.erase(0, taken);
    }
    return lines;
  }

 private:
  const std::string path_;
  std::streamoff read_to_ = 0;
};

class CommandRun {
 public:
  CommandRun(const ResolvedRun& config, const JobPlan& plan, const std::string& log_directory, RunObserver& observer,
             Interrupts& interrupts)
      : config_(config),
        plan_(plan),
        log_directory_(log_directory),
        observer_(observer),
        interrupts_(interrupts),
        monitor_(config.workers, from_seconds(config.timeout_seconds) + kPatience),
        output_(log_directory + "/" + log_name_of(plan.processes.front())) {}
  ~CommandRun() {
    kill_the_rest();
    for (const Worker& worker : workers_) {
      if (!worker.has_ended) reap(worker.child);
      std::error_code ignored;
      std::filesystem::remove(worker.step_file, ignored);
    }
  }

  Status start(const std::string& program) {
    SYNCOPATE_ASSIGN_OR_RETURN(const int port, free_port(config_.seed));
    for (const ProcessSpec& process : plan_.processes) {
      const std::string step_file = fmt::format("{}/worker-{}.steps", log_directory_, process.rank);
      auto environment = process.environment;
      environment.emplace_back(kMasterPort, fmt::to_string(port));
      environment.emplace_back(kStepFile, std::filesystem::absolute(step_file).string());
      SYNCOPATE_ASSIGN_OR_RETURN(StartedChild child,
                                 start_child(start_line_of(program, process.command), environment, process.name(),
                                             log_directory_ + "/" + log_name_of(process)));
      workers_.push_back({.child = std::move(child), .step_file = step_file, .reader = StepFileReader(step_file)});
    }
    return {};
  }

  RunOutcome run() {
    while (!monitor_.is_over()) {
      wait();
      take_interrupts();
      take_ends();
      take_told();
      show_output(false);
      if (const Status status = observer_.on_tick(clock_.now()); !status.ok())
        monitor_.on_failure(status, clock_.now());
      if (monitor_.must_kill(clock_.now())) kill_the_rest();
    }
    begin();  // of those that have made a step
    take_told();
    show_output(true);
    outcome_.verdict = monitor_.verdict();
    if (!outcome_.verdict && !has_begun_) {
      outcome_.verdict = Verdict{
          ExitCode::kUsage,
          fmt::format("{} ended well, and told of no step: it must call syncopate.torch.init(), and train with its "
                      "DistributedOptimizer or its hook (docs/pytorch.md)",
                      command_of(config_))};
    }
    return std::move(outcome_);
  }

 private:
  struct Worker {
    StartedChild child;
    std::string step_file;
    StepFileReader reader;
    bool has_ended = false;
    // Told before all workers have begun.
    std::vector<StepRecord> steps = {};
  };

  void wait() {
    std::vector<pollfd> items = {{.fd = interrupts_.handle(), .events = POLLIN, .revents = 0}};
    for (const Worker& worker : workers_) {
      if (!worker.has_ended) items.push_back({.fd = worker.child.handle.get(), .events = POLLIN, .revents = 0});
    }
    poll(items.data(), items.size(), kTickMs);
  }

  void take_interrupts() {
    if (!interrupts_.take()) return;
    monitor_.on_interrupt(clock_.now());
    for (const Worker& worker : workers_) {
      if (!worker.has_ended) kill(-worker.child.pid, SIGTERM);
    }
  }

  void take_ends() {
    for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
      Worker& worker = workers_[rank];
      if (worker.has_ended) continue;
      siginfo_t info{};
      const auto pid = static_cast<id_t>(worker.child.pid);
      if (waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) continue;
      // Its process group has its number, which is nobody else's until it is reaped.
      kill(-worker.child.pid, SIGKILL);
      rusage usage{};
      int status = 0;
      wait4(worker.child.pid, &status, 0, &usage);
      worker.has_ended = true;
      outcome_.peak_memory[worker.child.name] = usage.ru_maxrss * 1024;
      ProcessEnd end;
      if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
      if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
      if (end.has_last_words()) end.last_words = last_line_of(worker.child.log_file);
      monitor_.on_end(static_cast<int>(rank), end, clock_.now());
    }
  }

  void take_told() {
    for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
      Worker& worker = workers_[rank];
      Result<std::vector<StepFileEntry>> entries = worker.reader.read();
      if (!entries.ok()) monitor_.on_failure(entries.status(), clock_.now());
      if (!entries.ok()) continue;
      for (const StepFileEntry& entry : *entries) take(rank, entry);
    }
    const bool have_all_begun =
        std::ranges::all_of(workers_, [](const Worker& worker) { return worker.has_ended || !worker.steps.empty(); });
    if (have_all_begun) begin();
    if (!has_begun_) return;
    for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
      observer_.on_steps(static_cast<int>(rank), std::exchange(workers_[rank].steps, {}));
    }
    for (const EvaluationResult& evaluation : std::exchange(evaluations_, {})) observer_.on_evaluation(evaluation);
  }

  void take(std::size_t rank, const StepFileEntry& entry) {
    if (const auto* step = std::get_if<StepRecord>(&entry)) {
      workers_[rank].steps.push_back(*step);
      // Ranks take batches in turn, as far as is known.
      workers_[rank].steps.back().position = step->step * config_.workers + static_cast<std::int64_t>(rank);
    } else if (const auto* fact = std::get_if<ToldFact>(&entry); fact != nullptr && rank == 0) {
      observer_.on_fact(fact->name, fact->value);
    } else if (const auto* told = std::get_if<ToldEvaluation>(&entry); told != nullptr && rank == 0) {
      evaluations_.push_back({.steps_done = told->step,
                              .taken = told->taken,
                              .accuracy = told->accuracy,
                              .loss = told->loss,
                              .epoch = told->epoch});
    }
  }

  // Training begins with the first step of any worker.
  void begin() {
    if (has_begun_) return;
    TimePoint origin = TimePoint::max();
    for (const Worker& worker : workers_) {
      if (!worker.steps.empty()) origin = std::min(origin, worker.steps.front().end - worker.steps.front().total);
    }
    if (origin == TimePoint::max()) return;
    has_begun_ = true;
    // What was evaluated before is of the initial weights.
    for (EvaluationResult& evaluation : evaluations_) evaluation.taken = std::max(evaluation.taken, origin);
    observer_.on_training_begins(origin);
  }

  void show_output(bool is_last) {
    for (const std::string& line : output_.read(is_last)) observer_.on_output(line);
  }

  void kill_the_rest() {
    for (Worker& worker : workers_) {
      if (worker.has_ended) continue;
      kill(-worker.child.pid, SIGKILL);
      kill(worker.child.pid, SIGKILL);  // it may not be in its group yet
    }
    take_ends();
  }

  const ResolvedRun& config_;
  const JobPlan& plan_;
  const std::string log_directory_;
  RunObserver& observer_;
  Interrupts& interrupts_;
  const SteadyClock clock_;
  CommandMonitor monitor_;
  NewLines output_;  // of rank 0
  std::vector<Worker> workers_;
  std::vector<EvaluationResult> evaluations_;  // told before all workers have begun
  bool has_begun_ = false;
  RunOutcome outcome_;
};

}  // namespace

Result<RunOutcome> run_command(const ResolvedRun& config, const JobPlan& plan, const std::string& program,
                               const std::string& log_directory, RunObserver& observer, Interrupts& interrupts) {
  CommandRun run(config, plan, log_directory, observer, interrupts);
  SYNCOPATE_RETURN_IF_ERROR(run.start(program));
  return run.run();
}

}  // namespace syncopate::experiments
