#include "experiments/coordinator/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <zmq.hpp>

#include "experiments/config/toml.h"
#include "experiments/control/control_client.h"
#include "experiments/control/control_server.h"
#include "experiments/control/wire_records.h"
#include "experiments/coordinator/local_states.h"
#include "experiments/coordinator/process_table.h"

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
                 {.worker_losses_survived = worker_losses_survived(config),
                  .timeout = from_seconds(config.timeout_seconds),
                  .stalls = {.warning = stall_warning_of(config),
                             .heartbeat =
                                 heartbeat_interval(from_seconds(config.timeout_seconds), stall_warning_of(config))}},
                 clock_.now()),
        control_(plan, options.listen),
        clock_offsets_(plan.processes.size()),
        local_states_(options.local_state_size) {}

  Result<RunOutcome> run(Launcher& launcher) {
    Result<std::vector<StartedChild>> children =
        launcher.start(plan_, {.program = options_.program,
                               .rendezvous = control_.address(),
                               .log_directory = options_.log_directory,
                               .secret = options_.listen.keys ? options_.listen.keys->to_text() + "\n" : ""});
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
      for (const MonitorAction& action : monitor_.take_actions()) act(action);
      pass_on_snapshots();
      end_carriers(now);
    }
    outcome_.verdict = monitor_.verdict();
    outcome_.strangers += control_.dropped();
    return outcome_;
  }

 private:
  void wait() {
    std::vector<zmq::pollitem_t> items{control_.incoming(), {nullptr, interrupts_.handle(), ZMQ_POLLIN, 0}};
    for (int handle : processes_->handles()) items.push_back({nullptr, handle, ZMQ_POLLIN, 0});
    zmq::poll(items.data(), items.size(), kTick);
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
        return observer_.on_steps(plan_.processes[process].rank, records);
      }
      case ToCoordinator::kEpochQuestion:
        return on_epoch_question(process, message.epoch_question().epoch(), now);
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
      case ToCoordinator::kFinishQuestion:
        waiting_to_finish_.push_back(process);
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
    control_.welcome(process, to_toml(config_));
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

  void on_epoch_question(std::size_t process, std::int64_t epoch, TimePoint now) {
    if (epoch == 0 && !training_begun_) {
      waiting_to_train_.push_back(process);
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
    snapshots_.push_back({stamp, std::move(weights)});
    snapshots_.back().stamp.set_taken(stamp.taken() + clock_offsets_[process].count());
    pass_on_snapshots();
  }

  void on_local_state(std::size_t process, const control::LocalState& state) {
    if (plan_.processes[process].role != Role::kWorker) return;
    if (!local_states_.add(plan_.processes[process].rank, state.epoch(),
                           {state.values().data(), static_cast<std::size_t>(state.values().size())})) {
      observer_.on_report(fmt::format("a local state of {} values from {}, where the model's has {}, is left out",
                                      state.values().size(), plan_.processes[process].name(),
                                      options_.local_state_size));
    }
    pass_on_snapshots();
  }

  // To the evaluator, in the order in which they came, each once the local states of its epoch are there.
  void pass_on_snapshots() {
    std::vector<int> workers;
    for (std::size_t i = 0; i < plan_.processes.size(); ++i) {
      if (plan_.processes[i].role == Role::kWorker && monitor_.still_there(i))
        workers.push_back(plan_.processes[i].rank);
    }
    while (!snapshots_.empty()) {
      HeldSnapshot& next = snapshots_.front();
      const std::optional<std::vector<float>> state = local_states_.mean(next.stamp.epoch(), workers);
      if (!state) return;
      if (next.stamp.final()) {
        observer_.on_final_weights({next.weights.data<float>(), next.weights.size() / sizeof(float)}, *state,
                                   rows_of(next.stamp));
      }
      FromCoordinator message;
      *message.mutable_snapshot() = next.stamp;
      message.mutable_snapshot()->mutable_local_state()->Assign(state->begin(), state->end());
      const auto evaluator = std::ranges::find(plan_.processes, Role::kEvaluator, &ProcessSpec::role);
      control_.send(static_cast<std::size_t>(evaluator - plan_.processes.begin()), message, std::move(next.weights));
      snapshots_.pop_front();
    }
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
        FromCoordinator message;
        message.mutable_worker_lost()->set_rank(action.rank);
        for (std::size_t i = 0; i < plan_.processes.size(); ++i) {
          if (plan_.processes[i].role == Role::kServer) control_.send(i, message);
        }
        return settle_final_weights();
      }
      case MonitorAction::Kind::kReleaseTraining: {
        training_begun_ = true;
        observer_.on_training_begins(clock_.now());
        for (std::size_t process : waiting_to_train_) answer_epoch(process, 0);
        return;
      }
      case MonitorAction::Kind::kReport:
        outcome_.reports.push_back(action.text);
        return observer_.on_report(action.text);
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

  struct HeldSnapshot {
    control::Snapshot stamp;
    zmq::message_t weights;
  };
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
  std::vector<Duration> clock_offsets_;    // by process: what is to be added to its stamps to make them ours
  std::optional<ProcessTable> processes_;  // once they have been started
  std::map<std::string, Group> groups_;
  std::map<std::int64_t, bool> epochs_;  // whether to train it, once decided
  std::vector<std::size_t> waiting_to_train_;
  std::optional<TimePoint> all_ended_;
  bool training_begun_ = false;
  std::vector<std::size_t> waiting_to_finish_;
  std::optional<std::size_t> hands_in_;  // who was asked for the final weights
  bool final_received_ = false;
  LocalStates local_states_;
  std::deque<HeldSnapshot> snapshots_;  // that wait for them
  RunOutcome outcome_;
};

}  // namespace

int worker_losses_survived(const RunConfig& config) {
  if (config.mode != Mode::kPs || config.launcher == LauncherKind::kMpirun) return 0;
  const ps::Consistency consistency = consistency_of(config);
  return consistency.updates_together() ? consistency.backup_workers() : std::numeric_limits<int>::max();
}

Result<RunOutcome> coordinate(const RunConfig& config, const JobPlan& plan, const CoordinatorOptions& options,
                              Launcher& launcher, RunObserver& observer, Interrupts& interrupts) {
  try {
    return Coordinator(config, plan, options, observer, interrupts).run(launcher);
  } catch (const zmq::error_t& error) {
    return Status(Code::kInternal, fmt::format("the coordinator's socket: {}", error.what()));
  }
}

}  // namespace syncopate::experiments
