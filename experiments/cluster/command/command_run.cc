#include "experiments/cluster/command/command_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/os/readiness.h"
#include "common/transport/run_keys.h"
#include "experiments/cluster/command/command_monitor.h"
#include "experiments/cluster/command/command_process.h"
#include "experiments/cluster/command/free_port.h"
#include "experiments/cluster/command/new_lines.h"

namespace syncopate::experiments {
namespace {

constexpr std::chrono::milliseconds kTick{100};
// What the others may take beyond their own deadline to see that one has failed, and to end.
constexpr Duration kPatience = std::chrono::seconds(10);
// What relays may take to end what they have started, before their remote shells are killed.
constexpr Duration kRelaysEndWithin = std::chrono::seconds(5);

std::map<int, std::string> other_hosts(const JobPlan& plan) {
  std::map<int, std::string> hosts;
  for (const ProcessSpec& process : plan.processes) {
    if (process.remote) hosts[process.rank] = process.host;
  }
  return hosts;
}

class CommandRun {
 public:
  CommandRun(const ResolvedRun& config, const JobPlan& plan, const std::string& log_directory, RunObserver& observer,
             Interrupts& interrupts)
      : config_(config),
        plan_(plan),
        log_directory_(log_directory),
        observer_(observer),
        interrupts_(interrupts),
        monitor_({.workers = config.workers,
                  .patience = from_seconds(config.timeout_seconds) + kPatience,
                  .hosts = other_hosts(plan),
                  .is_elastic = config.elastic}),
        output_(log_directory + "/" + log_name_of(plan.processes.front())) {}

  ~CommandRun() {
    for (const Worker& worker : workers_) worker.process->kill(false);  // all, before the first is waited for
  }

  Status start(const std::string& program) {
    return spans_hosts(config_) ? start_below_relays(program) : start_here(program);
  }

  RunOutcome run() {
    while (!monitor_.is_over()) {
      wait();
      take_interrupts();
      exchange_with_relays();
      take_ends();
      take_told();
      show_output(false);
      if (const Status status = observer_.on_tick(clock_.now()); !status.ok())
        monitor_.on_failure(status, clock_.now());
      if (must_kill()) kill_the_rest();
    }
    begin();  // of those that have made a step
    take_told();
    show_output(true);
    outcome_.verdict = monitor_.verdict();
    if (!outcome_.verdict && !has_begun_) {
      outcome_.verdict = Verdict{
          ExitCode::kUsage,
          fmt::format(
              "{} ended well, and told of no step: either its Python has no syncopate (`import syncopate` fails "
              "there: pip install), or nothing in it trains by an optimizer of torch.optim, or "
              "DistributedOptimizer, the hook or the backend of syncopate.torch (docs/own_program.md)",
              command_of(config_))};
    }
    return std::move(outcome_);
  }

 private:
  struct Worker {
    std::unique_ptr<CommandProcess> process;
    std::vector<StepRecord> steps = {};  // told before all workers have begun
  };

  Status start_here(const std::string& program) {
    SYNCOPATE_ASSIGN_OR_RETURN(const int port, free_port("127.0.0.1"));
    for (const ProcessSpec& process : plan_.processes) {
      SYNCOPATE_ASSIGN_OR_RETURN(auto started,
                                 CommandProcess::start_here({plan_, process, program, log_directory_}, port));
      workers_.push_back({.process = std::move(started)});
    }
    return {};
  }

  Status start_below_relays(const std::string& program) {
    SYNCOPATE_ASSIGN_OR_RETURN(const RunKeys keys, RunKeys::make());
    const SecretText secret(keys.to_text().view(), "\n");
    begin_by_ = clock_.now() + from_seconds(config_.timeout_seconds);
    for (const ProcessSpec& process : plan_.processes) {
      SYNCOPATE_ASSIGN_OR_RETURN(auto started,
                                 CommandProcess::start_below_relay({plan_, process, program, log_directory_}, secret));
      workers_.push_back({.process = std::move(started)});
    }
    return {};
  }

  void exchange_with_relays() {
    for (const Worker& worker : workers_) worker.process->exchange(clock_);
    if (begin_by_) let_programs_begin();
  }

  // Once all relays are there.
  void let_programs_begin() {
    const auto late = std::ranges::find_if(workers_, [](const Worker& worker) { return !worker.process->ready(); });
    if (late == workers_.end()) {
      begin_by_.reset();
      for (const Worker& worker : workers_) worker.process->begin(*workers_.front().process->ready());
    } else if (clock_.now() >= *begin_by_ && !monitor_.verdict()) {
      const ProcessSpec& process = plan_.processes[static_cast<std::size_t>(late - workers_.begin())];
      monitor_.on_failure(Status::deadline_exceeded(fmt::format("{} (host {}) could not be started within {:g} s",
                                                                process.name(), process.host, config_.timeout_seconds)),
                          clock_.now());
    }
  }

  // A failure before all have begun ends those that wait to begin.
  bool must_kill() const { return monitor_.must_kill(clock_.now()) || (begin_by_ && monitor_.verdict()); }

  void wait() {
    std::vector<pollfd> items = {{.fd = interrupts_.handle(), .events = POLLIN, .revents = 0}};
    for (const Worker& worker : workers_) worker.process->add_handles(items);
    ready_before(clock_.now() + kTick, items);
  }

  void take_interrupts() {
    if (!interrupts_.take()) return;
    monitor_.on_interrupt(clock_.now());
    for (const Worker& worker : workers_) worker.process->interrupt();
  }

  void take_ends() {
    for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
      CommandProcess& process = *workers_[rank].process;
      const std::optional<ProcessEnd> end = process.take_end(clock_);
      if (!process.failure().ok()) monitor_.on_failure(process.failure(), clock_.now());
      if (!end) continue;
      if (process.peak_memory()) outcome_.peak_memory[process.name()] = *process.peak_memory();
      if (const auto loss = monitor_.on_end(static_cast<int>(rank), *end, clock_.now())) {
        outcome_.reports.push_back(*loss);
        observer_.on_report(*loss);
        observer_.on_worker_lost(static_cast<int>(rank));
      }
    }
  }

  void take_told() {
    for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
      CommandProcess& process = *workers_[rank].process;
      const Result<std::vector<StepFileEntry>> entries = process.take_told();
      if (!entries.ok()) monitor_.on_failure(entries.status(), clock_.now());
      if (!entries.ok()) continue;
      if (process.clock_uncertainty()) outcome_.clock_uncertainty[process.name()] = *process.clock_uncertainty();
      for (const StepFileEntry& entry : *entries) take(rank, entry);
    }
    const bool have_all_begun = std::ranges::all_of(
        workers_, [](const Worker& worker) { return worker.process->has_ended() || !worker.steps.empty(); });
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
    } else if (const auto* fact = std::get_if<ToldFact>(&entry)) {
      take(rank, *fact);
    } else if (const auto* server = std::get_if<ToldServer>(&entry)) {
      take(rank, *server);
    } else if (const auto* trace = std::get_if<ToldTrace>(&entry)) {
      take(rank, *trace);
    } else if (const auto* told = std::get_if<ToldEvaluation>(&entry); told != nullptr && rank == 0) {
      evaluations_.push_back({.steps_done = told->step,
                              .taken = told->taken,
                              .accuracy = told->accuracy,
                              .loss = told->loss,
                              .epoch = told->epoch});
    }
  }

  void take(std::size_t rank, const ToldFact& told) {
    if (told.name == kRefusedFact) return monitor_.on_failure(Status::invalid_argument(told.value), clock_.now());
    if (rank == 0) observer_.on_fact(told.name, told.value);
  }

  void take(std::size_t rank, const ToldServer& told) {
    if (told.server < 0 || told.server >= config_.servers) {
      return monitor_.on_failure(
          Status::data_loss(fmt::format("worker {} tells of server {} of {}", rank, told.server, config_.servers)),
          clock_.now());
    }
    add_time(told.figures, outcome_.servers[static_cast<int>(told.server)]);
    outcome_.server_updates += told.figures.updates;
    if (told.figures.dropped > 0) {
      outcome_.rejected_connections[fmt::format("server {}", told.server)] += told.figures.dropped;
    }
  }

  // Each process may tell as many events as one keeps.
  void take(std::size_t rank, const ToldTrace& told) {
    if (!config_.trace || told.server < -1 || told.server >= config_.servers) {
      return monitor_.on_failure(
          Status::data_loss(fmt::format("worker {} tells a trace that it was not asked for", rank)), clock_.now());
    }
    const std::string process =
        told.server < 0 ? fmt::format("worker {}", rank) : fmt::format("server {}", told.server);
    std::size_t& left = events_left_.try_emplace(process, trace_capacity_of(config_)).first->second;
    const std::span<const TraceEvent> taken = std::span(told.events).first(std::min(left, told.events.size()));
    left -= taken.size();
    observer_.on_trace(process, taken, told.dropped + static_cast<std::int64_t>(told.events.size() - taken.size()));
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
    const TimePoint now = clock_.now();
    killed_at_ = std::min(killed_at_.value_or(now), now);
    for (const Worker& worker : workers_) worker.process->kill(now - *killed_at_ >= kRelaysEndWithin);
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
  std::vector<EvaluationResult> evaluations_;       // told before all workers have begun
  std::map<std::string, std::size_t> events_left_;  // that a process may still tell of its trace
  bool has_begun_ = false;
  std::optional<TimePoint> begin_by_;   // while relays wait for each other
  std::optional<TimePoint> killed_at_;  // when the rest was first killed
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
