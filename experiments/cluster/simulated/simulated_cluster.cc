#include "experiments/cluster/simulated/simulated_cluster.h"

#include <fmt/format.h>
#include <signal.h>

#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "common/os/exhaustion.h"
#include "experiments/cluster/process/data_of.h"
#include "experiments/cluster/process/roles.h"
#include "simulation/simulated_wire.h"
#include "simulation/world.h"
#include "simulation/world_threads.h"

namespace syncopate::experiments {
namespace {

using control::FromCoordinator;
using control::ToCoordinator;

// One way, for each message to or from the coordinator, whose size does not count.
constexpr Duration kControlLatency = std::chrono::microseconds(50);
// Until the configuration is known, as in a process of its own.
constexpr Duration kHelloTimeout = std::chrono::seconds(30);
// A link's rate is that of Ethernet, of which TCP has this part for its payload (common/transport/link_shape.h).
constexpr double kPayloadPart = 1448.0 / 1538.0;
// Between processes of one host; they are rare, since each process has a host of its own.
constexpr double kLocalBytesPerSecond = 5e9;
constexpr Duration kLocalLatency = std::chrono::microseconds(5);

simulation::Fabric fabric_of(const ResolvedRun& config, std::size_t hosts) {
  const LinkShape link = config.shape.value_or(usual_simulated_link());
  return {.hosts = static_cast<int>(hosts),
          .bytes_per_second = static_cast<double>(link.bits_per_second) / 8 * kPayloadPart,
          .latency = link.delay,
          .local_bytes_per_second = kLocalBytesPerSecond,
          .local_latency = kLocalLatency};
}

class SimulatedLine;

// What the actors of a run share.
class SimulatedRuntime final : public ClusterRuntime, public ControlServer {
 public:
  SimulatedRuntime(simulation::World& world, const ResolvedRun& config, const JobPlan& plan, const ComputeTimes& times,
                   Interrupts& interrupts)
      : world_(world),
        threads_(world),
        config_(config),
        plan_(plan),
        times_(times),
        interrupts_(interrupts),
        fabric_(fabric_of(config, plan.processes.size())),
        wire_(world, fabric_, {.model = config.network, .links = {}}),
        news_(threads_.make_monitor()),
        processes_(plan.processes.size()) {}

  // For the coordinator.

  Threads& threads() override { return threads_; }
  ControlServer& control() override { return *this; }
  Status start() override {
    for (std::size_t process = 0; process < processes_.size(); ++process) start_one(process);
    return {};
  }
  Status start_again(std::size_t process) override {
    processes_[process] = {.incarnation = processes_[process].incarnation + 1};
    start_one(process);
    return {};
  }
  std::optional<pid_t> check_hello(std::size_t, pid_t pid) override { return pid; }
  bool empty() const override { return running_ == 0 && ended_.empty(); }
  std::vector<EndedChild> take_ended() override { return std::exchange(ended_, {}); }
  std::vector<std::size_t> carried() const override { return {}; }
  void kill_process(std::size_t process) override { signal_process(process, SIGKILL); }
  std::optional<pid_t> signal_process(std::size_t process, int signal) override;
  void kill_all() override {
    for (std::size_t process = 0; process < processes_.size(); ++process) kill_process(process);
  }
  void wait_for_news(Duration at_most) override {
    wait(at_most, [this] { return !inbox_.empty() || !ended_.empty(); });
  }
  void wait_for_message(Duration at_most) override {
    wait(at_most, [this] { return !inbox_.empty(); });
  }
  bool take_interrupt() override { return interrupts_.take(); }
  std::string take_shortage() override { return {}; }

  std::optional<Received> receive() override {
    if (inbox_.empty()) return std::nullopt;
    Received received = std::move(inbox_.front());
    inbox_.pop_front();
    return received;
  }
  std::int64_t dropped() const override { return 0; }
  void send(std::size_t process, const FromCoordinator& message, zmq::message_t weights) override;
  void welcome(std::size_t process, control::Welcome welcome) override;

  // For the processes.

  void connect_line(std::size_t process, SimulatedLine* line) { processes_[process].line = line; }
  void receive_from(std::size_t process, ToCoordinator message, std::optional<zmq::message_t> weights) {
    auto received = std::make_shared<Received>(Received{.process = process, .message = std::move(message)});
    if (weights) received->weights = std::move(*weights);
    world_.at(world_.now() + kControlLatency, [this, received, incarnation = processes_[process].incarnation] {
      if (processes_[received->process].incarnation != incarnation) return;
      inbox_.push_back(std::move(*received));
      news_->notify_all();
    });
  }
  // The process ends by itself, or by a signal.
  void end(std::size_t process, const ProcessEnd& end);
  [[noreturn]] void end_now(std::size_t process, ExitCode code) {
    end(process, {.exit_code = static_cast<int>(code)});
    while (true) world_.suspend_until(TimePoint::max());
  }

  // Returns the endpoint of a member of a group, once all have asked for theirs.
  Result<std::unique_ptr<Transport>> connect(std::size_t process, const TransportOptions& options,
                                             Rendezvous& rendezvous, TimePoint deadline);
  Result<std::shared_ptr<const worker::DatasetPair>> open_data(const RunSettings& config);
  // What one message takes between two hosts.
  ProcessHost::KnownLink link() const {
    return {.link = {.latency = seconds(fabric_.latency), .seconds_per_byte = 1 / fabric_.bytes_per_second},
            .source = "as simulated"};
  }
  const ComputeTimes& times() const { return times_; }
  void sleep(Duration duration) { world_.sleep_until(world_.now() + duration); }

 private:
  struct Outgoing {
    FromCoordinator message;
    zmq::message_t weights;
  };
  struct Process {
    int incarnation = 0;
    bool lives = false;
    simulation::World::GroupId group = 0;  // its actors
    SimulatedLine* line = nullptr;         // none: it has not begun, or has ended
    bool welcomed = false;
    std::deque<std::shared_ptr<Outgoing>> held;  // until it is welcomed
  };
  // The members of a group that have asked for their endpoints, and what they have not fetched yet.
  struct Group {
    std::vector<int> hosts;
    std::vector<std::unique_ptr<Transport>> endpoints;
  };

  template <typename Condition>
  void wait(Duration at_most, const Condition& condition) {
    const std::lock_guard lock(*news_);
    const TimePoint end = world_.now() + at_most;
    while (!condition() && world_.now() < end) news_->wait_until(end);
  }
  void start_one(std::size_t process);
  void transmit(std::size_t process, std::shared_ptr<Outgoing> outgoing);

  simulation::World& world_;
  simulation::WorldThreads threads_;
  const ResolvedRun& config_;
  const JobPlan& plan_;
  const ComputeTimes& times_;
  Interrupts& interrupts_;
  const simulation::Fabric fabric_;
  simulation::SimulatedWire wire_;
  const std::unique_ptr<Monitor> news_;  // says that the next two have changed
  std::deque<Received> inbox_;
  std::vector<EndedChild> ended_;
  std::vector<Process> processes_;
  std::size_t running_ = 0;
  std::map<std::string, Group> groups_;
  std::shared_ptr<const worker::DatasetPair> data_;
};

// A process's connection to the coordinator. Its thread waits for messages of either side, and for the next tick.
class SimulatedLine final : public ControlLine {
 public:
  SimulatedLine(SimulatedRuntime& runtime, std::size_t process, ControlChannel& channel)
      : runtime_(runtime), process_(process), channel_(channel), monitor_(runtime.threads().make_monitor()) {
    channel_.wake_by([this] { wake(); });
    runtime_.connect_line(process_, this);
  }
  ~SimulatedLine() override {
    stops_ = true;
    wake();
    thread_.reset();
    runtime_.connect_line(process_, nullptr);
  }

  void open(Handlers handlers) override {
    handlers_ = std::move(handlers);
    thread_ = runtime_.threads().start("control", [this] { loop(); });
  }
  void set_linger(Duration) override {}
  [[noreturn]] void end_process(ExitCode code) override {
    send_queued();
    runtime_.end_now(process_, code);
  }
  Place place() const override { return {.pid = 0, .host = "simulated"}; }
  Coordinator coordinator() const override { return Coordinator::kLives; }

  // A message has come.
  void put(FromCoordinator message, zmq::message_t weights) {
    inbox_.emplace_back(std::move(message), std::move(weights));
    wake();
  }

 private:
  void wake() {
    awake_ = true;
    monitor_->notify_all();
  }

  void loop() {
    const Clock& clock = runtime_.threads().clock();
    while (!stops_) {
      awake_ = false;
      send_queued();
      while (!inbox_.empty()) {
        std::pair<FromCoordinator, zmq::message_t> next = std::move(inbox_.front());
        inbox_.pop_front();
        handlers_.on_message(next.first, next.second);
      }
      const TimePoint until = handlers_.on_tick(clock.now());
      const std::lock_guard lock(*monitor_);
      while (!awake_ && clock.now() < until) monitor_->wait_until(until);
    }
    send_queued();
  }

  void send_queued() {
    for (ControlChannel::Outgoing& next : channel_.take_outgoing()) {
      runtime_.receive_from(process_, std::move(next.message), std::move(next.weights));
    }
  }

  SimulatedRuntime& runtime_;
  const std::size_t process_;
  ControlChannel& channel_;
  const std::unique_ptr<Monitor> monitor_;
  Handlers handlers_;
  std::deque<std::pair<FromCoordinator, zmq::message_t>> inbox_;
  bool awake_ = false;
  bool stops_ = false;
  std::unique_ptr<Threads::Handle> thread_;  // last: it uses all of the above
};

class SimulatedHost final : public ProcessHost {
 public:
  SimulatedHost(SimulatedRuntime& runtime, std::size_t process) : runtime_(runtime), process_(process) {}

  Threads& threads() override { return runtime_.threads(); }
  Result<std::shared_ptr<const worker::DatasetPair>> open_data(const RunSettings& config) override {
    return runtime_.open_data(config);
  }
  Result<std::unique_ptr<Transport>> connect(const ResolvedRun&, const TransportOptions& options,
                                             Rendezvous& rendezvous, TimePoint deadline) override {
    return runtime_.connect(process_, options, rendezvous, deadline);
  }
  // The wire itself has the shape that is asked for.
  std::shared_ptr<ProcessLink> make_link(const ResolvedRun&) override { return nullptr; }
  std::optional<KnownLink> known_link(const std::string&) override { return runtime_.link(); }
  Status keep_link(const std::string&, const allreduce::LinkModel&) override { return {}; }
  std::unique_ptr<worker::Model> timed(std::unique_ptr<worker::Model> model) override {
    return timed_model(std::move(model), runtime_.times(), [this](Duration duration) { runtime_.sleep(duration); });
  }

 private:
  SimulatedRuntime& runtime_;
  const std::size_t process_;
};

// The life of a process, as in process_main.cc.
Status live(SimulatedRuntime& runtime, const ResolvedRun& config, const JobPlan& plan, std::size_t process,
            int incarnation) {
  const ProcessSpec& spec = plan.processes[process];
  Activity activity;
  SimulatedHost host(runtime, process);
  const auto make_line = [&](ControlChannel& channel) {
    return std::make_unique<SimulatedLine>(runtime, process, channel);
  };
  SYNCOPATE_ASSIGN_OR_RETURN(
      std::unique_ptr<ControlClient> control,
      ControlClient::connect({.address = "the simulated coordinator",
                              .run_id = plan.run_id,
                              .self = {.role = spec.role, .rank = spec.rank, .incarnation = incarnation},
                              .make_line = make_line,
                              .threads = runtime.threads()},
                             activity, host.clock().now() + kHelloTimeout));
  SYNCOPATE_ASSIGN_OR_RETURN(RunKeys keys, RunKeys::make());  // nothing is encrypted
  return take_part({.config = config,
                    .run_id = plan.run_id,
                    .rank = spec.rank,
                    .host = host,
                    .control = *control,
                    .activity = activity,
                    .sockets = {.keys = std::move(keys)},
                    .role = spec.role});
}

void SimulatedRuntime::start_one(std::size_t process) {
  ++running_;
  processes_[process].lives = true;
  processes_[process].group = world_.start_group(plan_.processes[process].name(), [this, process] {
    const int incarnation = processes_[process].incarnation;
    const Status status = caught([&] { return live(*this, config_, plan_, process, incarnation); });
    end(process, {.exit_code = static_cast<int>(status.ok() ? ExitCode::kSuccess : exit_code_of(status))});
  });
}

void SimulatedRuntime::end(std::size_t process, const ProcessEnd& end) {
  processes_[process].line = nullptr;
  processes_[process].lives = false;
  // After its last messages.
  world_.at(world_.now() + kControlLatency, [this, process, end] {
    --running_;
    ended_.push_back({.process = process, .end = end, .name = plan_.processes[process].name(), .log_file = {}});
    news_->notify_all();
  });
}

// There are no pids: a process that is there has 0.
std::optional<pid_t> SimulatedRuntime::signal_process(std::size_t process, int signal) {
  const Process& its = processes_[process];
  if (!its.lives) return std::nullopt;
  if (signal == SIGSTOP) world_.freeze(its.group);
  if (signal == SIGCONT) world_.thaw(its.group);
  if (signal == SIGKILL) {
    world_.kill(its.group);
    end(process, {.signal = SIGKILL});
  }
  return 0;
}

void SimulatedRuntime::send(std::size_t process, const FromCoordinator& message, zmq::message_t weights) {
  auto outgoing = std::make_shared<Outgoing>(Outgoing{message, std::move(weights)});
  if (processes_[process].welcomed) {
    transmit(process, std::move(outgoing));
  } else {
    processes_[process].held.push_back(std::move(outgoing));
  }
}

void SimulatedRuntime::welcome(std::size_t process, control::Welcome welcome) {
  processes_[process].welcomed = true;
  FromCoordinator message;
  *message.mutable_welcome() = std::move(welcome);
  send(process, message, {});
  for (std::shared_ptr<Outgoing>& held : std::exchange(processes_[process].held, {}))
    transmit(process, std::move(held));
}

void SimulatedRuntime::transmit(std::size_t process, std::shared_ptr<Outgoing> outgoing) {
  const int incarnation = processes_[process].incarnation;
  world_.at(world_.now() + kControlLatency, [this, process, incarnation, outgoing = std::move(outgoing)] {
    const Process& its = processes_[process];
    if (its.line == nullptr || its.incarnation != incarnation) return;
    its.line->put(std::move(outgoing->message), std::move(outgoing->weights));
  });
}

Result<std::unique_ptr<Transport>> SimulatedRuntime::connect(std::size_t process, const TransportOptions& options,
                                                             Rendezvous& rendezvous, TimePoint deadline) {
  const auto rank = static_cast<std::size_t>(options.rank), size = static_cast<std::size_t>(options.size);
  Group& group = groups_[options.group];
  group.hosts.resize(size);
  group.hosts[rank] = static_cast<int>(process);
  SYNCOPATE_RETURN_IF_ERROR(
      rendezvous.exchange(options.group, options.rank, options.size, std::to_string(process), deadline).status());
  if (group.endpoints.empty()) group.endpoints = wire_.connect(group.hosts);
  return std::move(group.endpoints[rank]);
}

Result<std::shared_ptr<const worker::DatasetPair>> SimulatedRuntime::open_data(const RunSettings& config) {
  if (!data_) {
    SYNCOPATE_ASSIGN_OR_RETURN(worker::DatasetPair data, open_data_of(config));
    data_ = std::make_shared<const worker::DatasetPair>(std::move(data));
  }
  return data_;
}

}  // namespace

Result<RunOutcome> simulate(const ResolvedRun& config, const JobPlan& plan, const CoordinatorOptions& options,
                            const ComputeTimes& times, RunObserver& observer, Interrupts& interrupts) {
  simulation::World world;
  SimulatedRuntime runtime(world, config, plan, times, interrupts);
  std::optional<Result<RunOutcome>> outcome;
  world.start("coordinator", [&] { outcome = coordinate(config, plan, options, runtime, observer); });
  const Status ran = world.run();
  if (!ran.ok()) return ran.in("the simulated cluster");
  // What processes say of their memory is of all of them.
  if (outcome->ok()) (*outcome)->peak_memory.clear();
  return std::move(*outcome);
}

}  // namespace syncopate::experiments
