#include "experiments/coordinator/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <utility>
#include <zmq.hpp>

#include "experiments/checkpoint/run_facts.h"
#include "experiments/config/toml.h"
#include "experiments/control/control_client.h"
#include "experiments/control/control_server.h"
#include "experiments/control/wire_records.h"
#include "experiments/coordinator/fault_injector.h"
#include "experiments/coordinator/process_table.h"
#include "experiments/coordinator/snapshot_relay.h"

namespace syncopate::experiments {
namespace {

using control::FromCoordinator;
using control::ToCoordinator;

constexpr std::chrono::milliseconds kTick{100};
// mpirun, once its processes have ended, has so long to end itself.
constexpr Duration kCarrierPatience = std::chrono::seconds(5);

std::string last_line_of(const std::string& file) {
  std::ifstream lines(file);
  std::string line, last = "it printed nothing";
  while (std::getline(lines, line)) {
    if (line.find_first_not_of(" \t-") != std::string::npos) last = line;
  }
  return last + " (" + file + ")";
}

class Coordinator {
 public:
  Coordinator(const RunConfig& config, const JobPlan& plan, const CoordinatorOptions& options, RunObserver& observer,
              Interrupts& interrupts)
      : config_(config),
        plan_(plan),
        options_(options),
        observer_(observer),
        interrupts_(interrupts),
        monitor_(plan,
                 {.recovery = recovery_of(config),
                  .timeout = from_seconds(config.timeout_seconds),
                  .stalls = {.warning = stall_warning_of(config),
                             .heartbeat =
                                 heartbeat_interval(from_seconds(config.timeout_seconds), stall_warning_of(config))},
                  .resume = options.resume},
                 clock_.now()),
        control_(plan, options.listen),
        clock_offsets_(plan.processes.size()),
        snapshots_(options.local_state_size, evaluation()),
        faults_(config, options.total_steps, plan, hands()) {}

  Result<RunOutcome> run(Launcher& launcher) {
    launcher_ = &launcher;
    SYNCOPATE_RETURN_IF_ERROR(prepare_checkpoints());
    Result<std::vector<StartedChild>> children = launcher.start(plan_, launch_options());
    if (!children.ok()) return children.status();
    processes_.emplace(plan_.processes.size(), std::move(*children));
    while (!monitor_.over() || !processes_->empty()) {
      wait();
      if (interrupts_.take()) monitor_.on_interrupt(clock_.now());
      receive_all();
      for (const ProcessTable::Ended& ended : processes_->take_ended()) on_ended(ended);
      const TimePoint now = clock_.now();
      if (Status status = observer_.on_tick(now); !status.ok()) monitor_.on_output_failure(status, now);
      monitor_.on_tick(now);
      if (monitor_.stopping()) faults_.end();
      faults_.act(now);
      for (const MonitorAction& action : monitor_.take_actions()) act(action);
      if (checkpoints_) checkpoints_->act(now);
      pass_on_snapshots();
      end_carriers(now);
    }
    if (checkpoints_) outcome_.checkpoints = checkpoints_->finish(clock_.now());
    outcome_.verdict = monitor_.verdict();
    faults_.end();
    outcome_.faults = faults_.records();
    outcome_.strangers += control_.dropped();
    return outcome_;
  }

 private:
  void wait() {
    std::vector<zmq::pollitem_t> items{control_.incoming(), {nullptr, interrupts_.handle(), ZMQ_POLLIN, 0}};
    for (int handle : processes_->handles()) items.push_back({nullptr, handle, ZMQ_POLLIN, 0});
    const Duration until_fault = std::max(Duration::zero(), faults_.next() - clock_.now());
    zmq::poll(items.data(), items.size(), std::min(kTick, std::chrono::ceil<std::chrono::milliseconds>(until_fault)));
  }

  // How faults reach the processes.
  FaultInjector::Hands hands() {
    return {.still_there = [this](std::size_t process) { return monitor_.still_there(process); },
            .trains = [this](std::size_t process) { return monitor_.trains(process); },
            .signal = [this](std::size_t process, int signal) { return processes_->signal_process(process, signal); },
            .cut =
                [this](std::size_t process, Duration length) {
                  FromCoordinator message;
                  message.mutable_cut_links()->set_length(length.count());
                  control_.send(process, message);
                },
            .report = [this](const std::string& line) { observer_.on_report(line); }};
  }

  LaunchOptions launch_options() {
    return {.program = options_.program,
            .rendezvous = control_.address(),
            .log_directory = options_.log_directory,
            .secret = options_.listen.keys ? options_.listen.keys->to_text() + "\n" : ""};
  }

  // Messages.

  void receive_all() {
    while (std::optional<ControlServer::Received> received = control_.receive()) {
      monitor_.on_heard(received->process, clock_.now());
      handle(received->process, received->message, received->weights);
    }
  }

  void handle(std::size_t process, const ToCoordinator& message, zmq::message_t& weights) {
    const TimePoint now = clock_.now();
    switch (message.kind_case()) {
      case ToCoordinator::kHello:
        return welcome(process, message.hello(), now);
      case ToCoordinator::kPublish:
        return publish(process, message.publish());
      case ToCoordinator::kHeartbeat: {
        const control::Heartbeat& beat = message.heartbeat();
        monitor_.on_heartbeat(process, beat.operation(), beat.step(),
                              beat.has_collective() ? std::optional(from_wire(beat.collective())) : std::nullopt, now);
        FromCoordinator answer;
        answer.mutable_alive();
        return control_.send(process, answer);
      }
      case ToCoordinator::kSteps: {
        if (plan_.processes[process].role != Role::kWorker) return;
        std::vector<StepRecord> records;
        for (const control::Step& step : message.steps().steps()) {
          records.push_back(from_wire(step));
          records.back().end += clock_offsets_[process];
        }
        if (checkpoints_ && !records.empty()) {
          checkpoints_->course().on_steps(worker_writer(plan_.processes[process].rank), records.back().step + 1,
                                          clock_.now());
        }
        if (!records.empty()) monitor_.on_step_finished(process, records.back().end);
        return observer_.on_steps(plan_.processes[process].rank, records);
      }
      case ToCoordinator::kEpochQuestion:
        return on_epoch_question(process, message.epoch_question().epoch(), now);
      case ToCoordinator::kJoinRequest:
        return on_join_request(process, message.join_request().after(), now);
      case ToCoordinator::kTrouble: {
        const control::Failure& failure = message.trouble().failure();
        return monitor_.on_trouble(process, message.trouble().generation(),
                                   Status(static_cast<Code>(failure.code()), failure.message()), failure.operation(),
                                   failure.step(), now);
      }
      case ToCoordinator::kMissingWorker:
        return monitor_.on_missing(process, message.missing_worker().generation(), message.missing_worker().rank(),
                                   Duration(message.missing_worker().waited()), now);
      case ToCoordinator::kCheckpointReport:
        if (checkpoints_) {
          checkpoints_->course().on_report(message.checkpoint_report().writer(),
                                           from_wire(message.checkpoint_report()));
        }
        return;
      case ToCoordinator::kLocalState:
        return on_local_state(process, message.local_state());
      case ToCoordinator::kSnapshot:
        return on_snapshot(process, message.snapshot(), weights);
      case ToCoordinator::kEvaluation:
        return on_evaluation(message.evaluation(), now);
      case ToCoordinator::kFact:
        return observer_.on_fact(message.fact().name(), message.fact().value());
      case ToCoordinator::kClockQuestion:
        return tell_time(process, message.clock_question(), now);
      case ToCoordinator::kClockReport:
        clock_offsets_[process] = Duration(message.clock_report().offset());
        outcome_.clock_uncertainty[plan_.processes[process].name()] = Duration(message.clock_report().uncertainty());
        return;
      case ToCoordinator::kStepAnnouncement: {
        const std::int64_t step = message.step_announcement().step();
        monitor_.on_heartbeat(process, "beginning a step", step, std::nullopt, now);
        faults_.on_step_begins(process, step, now);
        FromCoordinator answer;
        answer.mutable_step_answer()->set_step(step);
        return control_.send(process, answer);
      }
      case ToCoordinator::kLeaveQuestion: {
        monitor_.on_leaving();
        FromCoordinator answer;
        answer.mutable_leave_answer();
        return control_.send(process, answer);
      }
      case ToCoordinator::kFinishQuestion:
        waiting_to_finish_.push_back(process);
        monitor_.on_training_over(process, now);
        return settle_final_weights();
      case ToCoordinator::kFinished:
        outcome_.server_updates += message.finished().server().updates();
        outcome_.strangers += message.finished().server().dropped();
        outcome_.peak_memory[plan_.processes[process].name()] = message.finished().peak_memory();
        return monitor_.on_finished(process, now);
      case ToCoordinator::kFailure:
        return monitor_.on_failure(process,
                                   Status(static_cast<Code>(message.failure().code()), message.failure().message()),
                                   message.failure().operation(), message.failure().step(), now);
      case ToCoordinator::KIND_NOT_SET:
        return;
    }
  }

  void welcome(std::size_t process, const control::Hello& hello, TimePoint now) {
    if (hello.run_id() != plan_.run_id) return;
    const ProcessSpec& spec = plan_.processes[process];
    // A person knows another host by the name that they have given it.
    monitor_.on_hello(process, hello.pid(), spec.remote ? spec.host : hello.host(), now);
    if (processes_->is_carried(process) && !spec.remote) {
      processes_->watch_carried(process, static_cast<pid_t>(hello.pid()));
    }
    control::Welcome welcome;
    welcome.set_config_toml(to_toml(config_));
    if (options_.checkpoints) welcome.set_checkpoints(options_.checkpoints->folder);
    const std::vector<std::int64_t> announced = faults_.announced_steps(process);
    welcome.mutable_announced_steps()->Add(announced.begin(), announced.end());
    control_.welcome(process, std::move(welcome));
  }

  void tell_time(std::size_t process, const control::ClockQuestion& question, TimePoint received) {
    FromCoordinator answer;
    answer.mutable_clock_answer()->set_sent(question.sent());
    answer.mutable_clock_answer()->set_received(received.time_since_epoch().count());
    answer.mutable_clock_answer()->set_answered(clock_.now().time_since_epoch().count());
    control_.send(process, answer);
  }

  void publish(std::size_t process, const control::Publish& publish) {
    if (publish.size() < 1 || publish.rank() < 0 || publish.rank() >= publish.size()) return;
    Group& group = groups_[publish.group()];
    group.members[publish.rank()] = publish.value();
    group.askers.push_back(process);
    if (static_cast<int>(group.members.size()) < publish.size()) return;
    FromCoordinator answer;
    answer.mutable_members()->set_group(publish.group());
    for (const auto& [rank, value] : group.members) answer.mutable_members()->add_values(value);
    // A process with several members in the group gets an answer for each.
    for (std::size_t asker : std::exchange(group.askers, {})) control_.send(asker, answer);
  }

  void on_join_request(std::size_t process, std::int64_t after, TimePoint now) {
    if (monitor_.is_member(process) && monitor_.still_there(process) && monitor_.generation().number > after) {
      return send_generation(process);
    }
    monitor_.on_join_request(process, after, now);
  }

  void send_generation(std::size_t process) {
    FromCoordinator message;
    *message.mutable_generation() = to_wire(monitor_.generation());
    control_.send(process, message);
  }

  // What was asked for a generation before is not answered any more: who is still there asks again. Somebody may have
  // asked for this one already, and have heard of it so.
  void proclaim() {
    const std::string of_this = fmt::format("@{}", monitor_.generation().number);
    std::erase_if(groups_, [&](const auto& group) { return !group.first.ends_with(of_this); });
    waiting_to_train_.clear();
    if (training_begun_) begin_checkpoints();
    for (std::size_t i = 0; i < plan_.processes.size(); ++i) {
      if (monitor_.is_member(i) && monitor_.still_there(i)) send_generation(i);
    }
  }

  void start_again(std::size_t process) {
    control_.forget(process);
    Result<StartedChild> child = launcher_->start_again(plan_, launch_options(), process);
    if (child.ok()) return processes_->add(std::move(*child));
    observer_.on_report(
        fmt::format("{} cannot be started again: {}", plan_.processes[process].name(), child.status().message()));
  }

  void on_epoch_question(std::size_t process, std::int64_t epoch, TimePoint now) {
    if (!training_begun_) {
      waiting_to_train_.push_back({process, epoch});
      return monitor_.on_ready_to_train(process, now);
    }
    answer_epoch(process, epoch);
  }

  void answer_epoch(std::size_t process, std::int64_t epoch) {
    // Decided once, when the first worker asks.
    const auto [decision, is_new] = epochs_.try_emplace(epoch, !outcome_.target_reached);
    FromCoordinator answer;
    answer.mutable_epoch_answer()->set_epoch(epoch);
    answer.mutable_epoch_answer()->set_go_on(decision->second);
    answer.mutable_epoch_answer()->set_snapshot(monitor_.chief() == process && monitor_.evaluator_keeps_up());
    control_.send(process, answer);
  }

  void on_snapshot(std::size_t process, const control::Snapshot& stamp, zmq::message_t& weights) {
    if (stamp.final()) {
      final_received_ = true;
      settle_final_weights();
    }
    monitor_.on_snapshot(weights.size());
    control::Snapshot stamped = stamp;
    stamped.set_taken(stamp.taken() + clock_offsets_[process].count());
    snapshots_.add(std::move(stamped), std::move(weights));
    pass_on_snapshots();
  }

  void on_local_state(std::size_t process, const control::LocalState& state) {
    if (plan_.processes[process].role != Role::kWorker) return;
    if (!snapshots_.add_local_state(plan_.processes[process].rank, state)) {
      observer_.on_report(fmt::format("a local state of {} values from {}, where the model's has {}, is left out",
                                      state.values().size(), plan_.processes[process].name(),
                                      options_.local_state_size));
    }
    pass_on_snapshots();
  }

  void pass_on_snapshots() {
    std::vector<int> workers;
    for (std::size_t i = 0; i < plan_.processes.size(); ++i) {
      if (plan_.processes[i].role == Role::kWorker && monitor_.still_there(i))
        workers.push_back(plan_.processes[i].rank);
    }
    snapshots_.pass_on(workers);
  }

  // Where snapshots go.
  SnapshotRelay::Hands evaluation() {
    const auto evaluator = std::ranges::find(plan_.processes, Role::kEvaluator, &ProcessSpec::role);
    const auto process = static_cast<std::size_t>(evaluator - plan_.processes.begin());
    return {.send = [this, process](const FromCoordinator& message,
                                    zmq::message_t weights) { control_.send(process, message, std::move(weights)); },
            .on_final =
                [this](const control::Snapshot& stamp, std::span<const float> weights, std::span<const float> state) {
                  observer_.on_final_weights(weights, state, rows_of(stamp));
                }};
  }

  // Every worker holds the final weights. The first that asks hands them in; the others stay until they have arrived,
  // so that another can take over should that one be lost.
  void settle_final_weights() {
    const auto answer = [&](std::size_t process, bool send_weights) {
      FromCoordinator message;
      message.mutable_finish_answer()->set_send_weights(send_weights);
      control_.send(process, message);
    };
    if (final_received_) {
      for (std::size_t process : std::exchange(waiting_to_finish_, {})) answer(process, false);
      return;
    }
    std::erase_if(waiting_to_finish_, [&](std::size_t process) { return !monitor_.still_there(process); });
    if (waiting_to_finish_.empty() || (hands_in_ && monitor_.still_there(*hands_in_))) return;
    hands_in_ = waiting_to_finish_.front();
    waiting_to_finish_.erase(waiting_to_finish_.begin());
    answer(*hands_in_, true);
  }

  void on_evaluation(const control::Evaluation& evaluation, TimePoint now) {
    const control::Snapshot& stamp = evaluation.snapshot();
    observer_.on_evaluation({.epoch = stamp.epoch(),
                             .steps_done = stamp.steps_done(),
                             .taken = TimePoint(Duration(stamp.taken())),
                             .final = stamp.final(),
                             .accuracy = evaluation.accuracy(),
                             .loss = evaluation.loss(),
                             .figures = figures_of(evaluation)});
    const double headline = headline_of(evaluation.accuracy(), figures_of(evaluation));
    if (config_.target_accuracy > 0 && headline >= config_.target_accuracy) outcome_.target_reached = true;
    monitor_.on_evaluation(now);
  }

  void act(const MonitorAction& action) {
    switch (action.kind) {
      case MonitorAction::Kind::kStopAll: {
        FromCoordinator message;
        message.mutable_stop()->set_reason(action.text);
        for (std::size_t i = 0; i < plan_.processes.size(); ++i) control_.send(i, message);
        return;
      }
      case MonitorAction::Kind::kKill:
        return processes_->kill_process(action.process);
      case MonitorAction::Kind::kWorkerLost: {
        observer_.on_worker_lost(action.rank);
        if (checkpoints_) checkpoints_->course().on_lost(worker_writer(action.rank));
        FromCoordinator message;
        message.mutable_worker_lost()->set_rank(action.rank);
        for (std::size_t i = 0; i < plan_.processes.size(); ++i) {
          if (serves(plan_.processes[i].role)) control_.send(i, message);
        }
        return settle_final_weights();
      }
      case MonitorAction::Kind::kReleaseTraining: {
        training_begun_ = true;
        observer_.on_training_begins(clock_.now());
        begin_checkpoints();
        faults_.on_training_begins(clock_.now());
        for (const auto& [process, epoch] : waiting_to_train_) answer_epoch(process, epoch);
        return;
      }
      case MonitorAction::Kind::kStart:
        return start_again(action.process);
      case MonitorAction::Kind::kProclaim:
        return proclaim();
      case MonitorAction::Kind::kWorkerJoined:
        return observer_.on_worker_joined(action.rank);
      case MonitorAction::Kind::kReport:
        return report(action.text);
    }
  }

  void report(const std::string& line) {
    outcome_.reports.push_back(line);
    observer_.on_report(line);
  }

  // Checkpoints.

  Status prepare_checkpoints() {
    if (!options_.checkpoints) return {};
    Result<std::unique_ptr<CheckpointKeeper>> keeper = CheckpointKeeper::create(
        *options_.checkpoints,
        {.order = [this](std::int64_t generation, std::int64_t step) { order_checkpoint(generation, step); },
         .report = [this](const std::string& line) { report(line); },
         .completed = [this](const std::string& folder) { monitor_.on_checkpoint(folder); }});
    if (!keeper.ok()) return keeper.status();
    checkpoints_ = std::move(*keeper);
    return {};
  }

  void begin_checkpoints() {
    if (!checkpoints_) return;
    const Generation& generation = monitor_.generation();
    checkpoints_->course().on_generation(generation.number,
                                         checkpoint_writers(config_, options_.local_state_size > 0, generation.workers),
                                         clock_.now());
  }

  void order_checkpoint(std::int64_t generation, std::int64_t step) {
    FromCoordinator message;
    message.mutable_checkpoint_order()->set_generation(generation);
    message.mutable_checkpoint_order()->set_step(step);
    for (std::size_t i = 0; i < plan_.processes.size(); ++i) {
      if (monitor_.is_member(i) && monitor_.still_there(i)) control_.send(i, message);
    }
  }

  // Processes.

  void on_ended(const ProcessTable::Ended& ended) {
    if (!ended.process) {
      return monitor_.on_carrier_end(processes_->carried(), ended.end, ended.name, last_line_of(ended.log_file),
                                     clock_.now());
    }
    if (!ended.end.signal) hear_last_words(*ended.process);
    monitor_.on_end(*ended.process, ended.end, clock_.now());
  }

  // Takes what a process that has ended without being killed has still said: it has been sent, but not yet received.
  void hear_last_words(std::size_t process) {
    const TimePoint deadline = clock_.now() + options_.last_words_time;
    receive_all();
    while (!monitor_.stopping() && monitor_.still_there(process) && clock_.now() < deadline) {
      zmq::pollitem_t item = control_.incoming();
      zmq::poll(&item, 1, std::chrono::ceil<std::chrono::milliseconds>(deadline - clock_.now()));
      receive_all();
    }
  }

  // What carried the processes has nothing left to carry once they have all ended.
  void end_carriers(TimePoint now) {
    if (!monitor_.over()) return;
    if (!all_ended_) all_ended_ = now;
    if (now - *all_ended_ >= kCarrierPatience) processes_->kill_children();
  }

  struct Group {
    std::map<int, std::string> members;
    std::vector<std::size_t> askers;
  };

  const RunConfig& config_;
  const JobPlan& plan_;
  const CoordinatorOptions& options_;
  RunObserver& observer_;
  Interrupts& interrupts_;
  SteadyClock clock_;
  RunMonitor monitor_;
  ControlServer control_;
  Launcher* launcher_ = nullptr;           // of the run under way
  std::vector<Duration> clock_offsets_;    // by process: what is to be added to its stamps to make them ours
  std::optional<ProcessTable> processes_;  // once they have been started
  std::map<std::string, Group> groups_;
  std::map<std::int64_t, bool> epochs_;                                 // whether to train it, once decided
  std::vector<std::pair<std::size_t, std::int64_t>> waiting_to_train_;  // who, and for which epoch
  std::optional<TimePoint> all_ended_;
  bool training_begun_ = false;
  std::vector<std::size_t> waiting_to_finish_;
  std::optional<std::size_t> hands_in_;  // who was asked for the final weights
  bool final_received_ = false;
  SnapshotRelay snapshots_;
  std::unique_ptr<CheckpointKeeper> checkpoints_;  // where the run writes any
  FaultInjector faults_;
  RunOutcome outcome_;
};

}  // namespace

Result<RunOutcome> coordinate(const RunConfig& config, const JobPlan& plan, const CoordinatorOptions& options,
                              Launcher& launcher, RunObserver& observer, Interrupts& interrupts) {
  try {
    return Coordinator(config, plan, options, observer, interrupts).run(launcher);
  } catch (const zmq::error_t& error) {
    return Status(Code::kInternal, fmt::format("the coordinator's socket: {}", error.what()));
  }
}

}  // namespace syncopate::experiments
