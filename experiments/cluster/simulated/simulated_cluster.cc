#include "experiments/cluster/simulated/simulated_cluster.h"

#include <signal.h>

#include <optional>
#include <utility>

#include "common/os/exhaustion.h"
#include "experiments/cluster/process/roles.h"
#include "experiments/cluster/simulated/control_exchange.h"
#include "experiments/cluster/simulated/data_plane.h"
#include "experiments/cluster/simulated/process_logs.h"
#include "experiments/cluster/simulated/simulated_host.h"
#include "simulation/world.h"
#include "simulation/world_threads.h"

namespace syncopate::experiments {
namespace {

// Until the configuration is known, as in a process of its own.
constexpr Duration kHelloTimeout = std::chrono::seconds(30);

// The processes of a run as groups of actors of a world.
class SimulatedRuntime final : public ClusterRuntime {
 public:
  SimulatedRuntime(simulation::World& world, const ResolvedRun& config, const JobPlan& plan,
                   const SimulatedCompute& compute, ProcessLogs& logs, Interrupts& interrupts)
      : world_(world),
        config_(config),
        plan_(plan),
        compute_(compute),
        logs_(logs),
        interrupts_(interrupts),
        threads_(world),
        plane_(world, config, plan, compute.scale()),
        news_(threads_.make_monitor()),
        control_(world, threads_, *news_, plan.processes.size()),
        processes_(plan.processes.size()) {}

  Threads& threads() override { return threads_; }
  ControlServer& control() override { return control_; }
  Status start() override {
    for (std::size_t process = 0; process < processes_.size(); ++process) start_one(process);
    return {};
  }
  Status start_again(std::size_t process) override {
    start_one(process);
    return {};
  }
  std::optional<pid_t> check_hello(std::size_t, pid_t pid) override { return pid; }
  bool empty() const override { return running_ == 0 && ended_.empty(); }
  std::vector<EndedChild> take_ended() override { return std::exchange(ended_, {}); }
  std::vector<std::size_t> carried() const override { return {}; }
  void kill_process(std::size_t process) override { signal_process(process, SIGKILL); }
  // There are no pids: a process that is there has 0.
  std::optional<pid_t> signal_process(std::size_t process, int signal) override {
    if (!processes_[process].lives) return std::nullopt;
    for (const std::size_t member : members_with(process)) {
      const Process& its = processes_[member];
      if (signal == SIGSTOP) world_.freeze(its.group);
      if (signal == SIGCONT) world_.thaw(its.group);
      if (signal == SIGKILL) end_at_once(member, {.signal = SIGKILL});
    }
    return 0;
  }
  void kill_all() override {
    for (std::size_t process = 0; process < processes_.size(); ++process) kill_process(process);
  }
  void wait_for_news(Duration at_most) override {
    wait(at_most, [this] { return !control_.empty() || !ended_.empty(); });
  }
  void wait_for_message(Duration at_most) override {
    wait(at_most, [this] { return !control_.empty(); });
  }
  std::optional<int> take_interrupt() override { return interrupts_.take(); }
  std::string take_shortage() override { return {}; }

 private:
  struct Process {
    int incarnation = -1;  // none has begun
    bool lives = false;
    simulation::World::GroupId group = 0;  // its actors
  };

  // Returns all members of the process that this one is, or is within, and that still live: it comes first.
  std::vector<std::size_t> members_with(std::size_t process) const {
    const std::size_t whole = plan_.processes[process].within.value_or(process);
    std::vector<std::size_t> members = members_within(plan_, whole);
    members.insert(members.begin(), whole);
    std::erase_if(members, [this](std::size_t member) { return !processes_[member].lives; });
    return members;
  }

  template <typename Condition>
  void wait(Duration at_most, const Condition& condition) {
    const std::lock_guard lock(*news_);
    const TimePoint end = world_.now() + at_most;
    while (!condition() && world_.now() < end) news_->wait_until(end);
  }

  void start_one(std::size_t process) {
    Process& its = processes_[process];
    its = {.incarnation = its.incarnation + 1, .lives = true};
    control_.begin(process);
    ++running_;
    its.group = world_.start_group(plan_.processes[process].name(), [this, process] {
      const Status status = caught([&] { return live(process); });
      end(process, {.exit_code = static_cast<int>(status.ok() ? ExitCode::kSuccess : exit_code_of(status))});
    });
    logs_.begin(its.group, process);
  }

  // The life of a process, as in process_main.cc.
  Status live(std::size_t process) {
    const ProcessSpec& spec = plan_.processes[process];
    Activity activity;
    SimulatedHost host(world_, threads_, plane_, compute_, process, spec.rank);
    const auto end_process = [this, process](ExitCode code) {
      std::vector<std::size_t> others = members_with(process);
      std::erase(others, process);
      for (const std::size_t other : others) end_at_once(other, {.exit_code = static_cast<int>(code)});
      end_at_once(process, {.exit_code = static_cast<int>(code)});
    };
    const auto make_line = [&](ControlChannel& channel) { return control_.make_line(process, channel, end_process); };
    SYNCOPATE_ASSIGN_OR_RETURN(
        std::unique_ptr<ControlClient> control,
        ControlClient::connect(
            {.address = "the simulated coordinator",
             .run_id = plan_.run_id,
             .self = {.role = spec.role, .rank = spec.rank, .incarnation = processes_[process].incarnation},
             .make_line = make_line,
             .threads = threads_},
            activity, host.clock().now() + kHelloTimeout));
    SYNCOPATE_ASSIGN_OR_RETURN(RunKeys keys, RunKeys::make());  // nothing is encrypted
    return take_part({.config = config_,
                      .run_id = plan_.run_id,
                      .rank = spec.rank,
                      .host = host,
                      .control = *control,
                      .activity = activity,
                      .sockets = {.keys = std::move(keys)},
                      .role = spec.role});
  }

  void end_at_once(std::size_t process, const ProcessEnd& how) {
    end(process, how);
    world_.kill(processes_[process].group);
  }

  // The process ends by itself, or by a signal.
  void end(std::size_t process, const ProcessEnd& end) {
    control_.end(process);
    plane_.end_process(process);
    processes_[process].lives = false;
    // After its last messages.
    world_.at(world_.now() + ControlExchange::kLatency, [this, process, end] {
      --running_;
      ended_.push_back({.process = process,
                        .end = end,
                        .name = plan_.processes[process].name(),
                        .log_file = logs_.file_of(process)});
      news_->notify_all();
    });
  }

  simulation::World& world_;
  const ResolvedRun& config_;
  const JobPlan& plan_;
  const SimulatedCompute& compute_;
  ProcessLogs& logs_;
  Interrupts& interrupts_;
  simulation::WorldThreads threads_;
  DataPlane plane_;
  const std::unique_ptr<Monitor> news_;  // a message has come, or something has ended
  ControlExchange control_;
  std::vector<Process> processes_;
  std::vector<EndedChild> ended_;
  std::size_t running_ = 0;
};

}  // namespace

Result<RunOutcome> simulate(const ResolvedRun& config, const JobPlan& plan, const CoordinatorOptions& options,
                            const SimulatedCompute& compute, const std::string& log_directory, RunObserver& observer,
                            Interrupts& interrupts) {
  simulation::World world;
  world.set_seconds_per_byte(Processing::kSum, compute.processing.sum);
  world.set_seconds_per_byte(Processing::kUpdate, compute.processing.update);
  world.set_seconds_per_byte(Processing::kEncode, compute.processing.encode);
  world.set_seconds_per_byte(Processing::kDecode, compute.processing.decode);
  ProcessLogs logs(world, plan, log_directory);
  SimulatedRuntime runtime(world, config, plan, compute, logs, interrupts);
  std::optional<Result<RunOutcome>> outcome;
  world.start("coordinator", [&] { outcome = coordinate(config, plan, options, runtime, observer); });
  const Status ran = world.run();
  if (!ran.ok()) return ran.in("the simulated cluster");
  if (outcome->ok()) {
    (*outcome)->simulated_events = static_cast<std::int64_t>(world.events());
    (*outcome)->peak_memory.clear();  // what processes say of their memory is of all of them
  }
  return std::move(*outcome);
}

}  // namespace syncopate::experiments
