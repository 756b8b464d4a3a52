#include "experiments/coordinator/coordinator.h"

#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <utility>
#include <zmq.hpp>

#include "experiments/config/toml.h"
#include "experiments/control/control.pb.h"
#include "experiments/control/wire_records.h"

namespace syncopate::experiments {
namespace {

using control::FromCoordinator;
using control::ToCoordinator;

constexpr std::chrono::milliseconds kTick{100};
// mpirun, once its processes have ended, has so long to end itself.
constexpr Duration kCarrierPatience = std::chrono::seconds(5);
// A process's last words may take so long from its end of the connection to ours once it has ended.
constexpr Duration kLastWordsTime = std::chrono::milliseconds(500);

std::string last_line_of(const std::string& file) {
  std::ifstream lines(file);
  std::string line, last = "it printed nothing";
  while (std::getline(lines, line)) {
    if (line.find_first_not_of(" \t-") != std::string::npos) last = line;
  }
  return last + " (" + file + ")";
}

// mpirun ends all that it carries as soon as one of them dies.
bool survives_worker_loss(const RunConfig& config) {
  return config.mode == Mode::kPs && !config.consistency.updates_together() && config.launcher != LauncherKind::kMpirun;
}

class Coordinator {
 public:
  Coordinator(const RunConfig& config, const JobPlan& plan, RunObserver& observer, Interrupts& interrupts)
      : config_(config),
        plan_(plan),
        observer_(observer),
        interrupts_(interrupts),
        monitor_(
            plan,
            {.survives_worker_loss = survives_worker_loss(config), .timeout = from_seconds(config.timeout_seconds)},
            clock_.now()),
        context_(1),
        socket_(context_, zmq::socket_type::router),
        handles_(plan.processes.size()),
        greeted_(plan.processes.size()),
        held_(plan.processes.size()) {
    socket_.set(zmq::sockopt::linger, 500);
    socket_.bind("tcp://127.0.0.1:*");
    for (std::size_t i = 0; i < plan.processes.size(); ++i) {
      const ProcessSpec& process = plan.processes[i];
      by_identity_[fmt::format("{}-{}", name_of(process.role), process.rank)] = i;
    }
  }

  // Whatever happens, nothing that was started lives on.
  ~Coordinator() {
    for (const StartedChild& child : children_) {
      kill(child.pid, SIGKILL);
      waitpid(child.pid, nullptr, 0);
    }
  }

  Result<RunOutcome> run(Launcher& launcher, const CoordinatorOptions& options) {
    Result<std::vector<StartedChild>> children =
        launcher.start(plan_, {options.program, socket_.get(zmq::sockopt::last_endpoint), options.log_directory});
    if (!children.ok()) return children.status();
    children_ = std::move(*children);
    for (std::size_t i = 0; i < plan_.processes.size(); ++i) {
      if (std::ranges::find(children_, i, &StartedChild::process) == children_.end()) carried_.push_back(i);
    }
    while (!monitor_.over() || !children_.empty()) {
      wait();
      if (interrupts_.take()) monitor_.on_interrupt(clock_.now());
      receive_all();
      look_at_children();
      look_at_grandchildren();
      const TimePoint now = clock_.now();
      if (Status status = observer_.on_tick(now); !status.ok()) monitor_.on_output_failure(status, now);
      monitor_.on_tick(now);
      for (const MonitorAction& action : monitor_.take_actions()) act(action);
      end_carriers(now);
    }
    outcome_.verdict = monitor_.verdict();
    return outcome_;
  }

 private:
  void wait() {
    std::vector<zmq::pollitem_t> items{{socket_.handle(), 0, ZMQ_POLLIN, 0},
                                       {nullptr, interrupts_.handle(), ZMQ_POLLIN, 0}};
    for (const StartedChild& child : children_) items.push_back({nullptr, child.handle.get(), ZMQ_POLLIN, 0});
    for (const FileDescriptor& handle : handles_) {
      if (handle.open()) items.push_back({nullptr, handle.get(), ZMQ_POLLIN, 0});
    }
    zmq::poll(items.data(), items.size(), kTick);
  }

  // Messages in.

  void receive_all() {
    zmq::message_t identity, head;
    while (socket_.recv(identity, zmq::recv_flags::dontwait)) {
      zmq::message_t weights;
      const bool has_head = identity.more() && socket_.recv(head, zmq::recv_flags::none);
      if (has_head && head.more()) (void)socket_.recv(weights, zmq::recv_flags::none);
      ToCoordinator message;
      const auto sender = by_identity_.find(identity.to_string());
      if (!has_head || sender == by_identity_.end() ||
          !message.ParseFromArray(head.data(), static_cast<int>(head.size()))) {
        if (dropped_++ == 0) spdlog::warn("a stranger's message was dropped");
        continue;
      }
      monitor_.on_heard(sender->second, clock_.now());
      handle(sender->second, message, weights);
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
        monitor_.on_heartbeat(process, message.heartbeat().operation(), message.heartbeat().step(), now);
        FromCoordinator answer;
        answer.mutable_alive();
        return send(process, answer);
      }
      case ToCoordinator::kSteps: {
        if (plan_.processes[process].role != Role::kWorker) return;
        std::vector<StepRecord> records;
        for (const control::Step& step : message.steps().steps()) records.push_back(from_wire(step));
        return observer_.on_steps(plan_.processes[process].rank, records);
      }
      case ToCoordinator::kEpochQuestion:
        return on_epoch_question(process, message.epoch_question().epoch(), now);
      case ToCoordinator::kSnapshot:
        return on_snapshot(message.snapshot(), weights);
      case ToCoordinator::kEvaluation:
        return on_evaluation(message.evaluation(), now);
      case ToCoordinator::kFinishQuestion:
        waiting_to_finish_.push_back(process);
        return settle_final_weights();
      case ToCoordinator::kFinished:
        outcome_.server_updates += message.finished().server().updates();
        outcome_.server_dropped += message.finished().server().dropped();
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
    monitor_.on_hello(process, hello.pid(), hello.host(), now);
    if (is_carried(process) && hello.host() == plan_.processes[process].host) {
      handles_[process] = FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(hello.pid()), 0)));
    }
    FromCoordinator answer;
    answer.mutable_welcome()->set_config_toml(to_toml(config_));
    transmit(process, {frame_of(answer), std::nullopt});
    greeted_[process] = true;
    for (Outgoing& message : std::exchange(held_[process], {})) transmit(process, std::move(message));
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
    for (std::size_t asker : std::exchange(group.askers, {})) send(asker, answer);
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
    answer.mutable_epoch_answer()->set_snapshot(monitor_.chief() == process);
    send(process, answer);
  }

  void on_snapshot(const control::Snapshot& stamp, zmq::message_t& weights) {
    if (stamp.final()) {
      observer_.on_final_weights({weights.data<float>(), weights.size() / sizeof(float)});
      final_received_ = true;
      settle_final_weights();
    }
    FromCoordinator message;
    *message.mutable_snapshot() = stamp;
    const auto evaluator = by_identity_.find(fmt::format("{}-0", name_of(Role::kEvaluator)));
    send(evaluator->second, message, &weights);
    monitor_.on_snapshot_sent_to_evaluator();
  }

  // Every worker holds the final weights. The first that asks hands them in; the others stay until they have arrived,
  // so that another can take over should that one be lost.
  void settle_final_weights() {
    const auto answer = [&](std::size_t process, bool send_weights) {
      FromCoordinator message;
      message.mutable_finish_answer()->set_send_weights(send_weights);
      send(process, message);
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
                             .loss = evaluation.loss()});
    if (config_.target_accuracy > 0 && evaluation.accuracy() >= config_.target_accuracy) outcome_.target_reached = true;
    monitor_.on_evaluation(now);
  }

  // Messages out.

  struct Outgoing {
    zmq::message_t head;
    std::optional<zmq::message_t> weights;
  };

  static zmq::message_t frame_of(const FromCoordinator& message) {
    zmq::message_t frame(message.ByteSizeLong());
    message.SerializeToArray(frame.data(), static_cast<int>(frame.size()));
    return frame;
  }

  // A router drops what is meant for somebody who is not connected. Who has not said hello gets it with the welcome;
  // who is gone needs it no more.
  void send(std::size_t process, const FromCoordinator& message, zmq::message_t* weights = nullptr) {
    Outgoing outgoing{frame_of(message), std::nullopt};
    if (weights != nullptr) outgoing.weights = std::move(*weights);
    if (!greeted_[process]) {
      held_[process].push_back(std::move(outgoing));
    } else {
      transmit(process, std::move(outgoing));
    }
  }

  void transmit(std::size_t process, Outgoing message) {
    const ProcessSpec& to = plan_.processes[process];
    zmq::message_t identity(fmt::format("{}-{}", name_of(to.role), to.rank));
    socket_.send(identity, zmq::send_flags::sndmore);
    socket_.send(message.head, message.weights ? zmq::send_flags::sndmore : zmq::send_flags::none);
    if (message.weights) socket_.send(*message.weights, zmq::send_flags::none);
  }

  void act(const MonitorAction& action) {
    switch (action.kind) {
      case MonitorAction::Kind::kStopAll: {
        FromCoordinator message;
        message.mutable_stop()->set_reason(action.text);
        for (std::size_t i = 0; i < plan_.processes.size(); ++i) send(i, message);
        return;
      }
      case MonitorAction::Kind::kKill:
        return kill_process(action.process);
      case MonitorAction::Kind::kWorkerLost: {
        observer_.on_worker_lost(action.rank);
        FromCoordinator message;
        message.mutable_worker_lost()->set_rank(action.rank);
        for (std::size_t i = 0; i < plan_.processes.size(); ++i) {
          if (plan_.processes[i].role == Role::kServer) send(i, message);
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

  bool is_carried(std::size_t process) const { return std::ranges::find(carried_, process) != carried_.end(); }

  void kill_process(std::size_t process) {
    if (handles_[process].open()) {
      syscall(SYS_pidfd_send_signal, handles_[process].get(), SIGKILL, nullptr, 0);
      return;
    }
    for (const StartedChild& child : children_) {
      // Under mpirun a process that has not said hello can only be reached through what carries it.
      if (child.process == process || (!child.process && is_carried(process))) kill(child.pid, SIGKILL);
    }
  }

  // Takes what a process that has ended without being killed has still said: it has been sent, but not yet received.
  void hear_last_words(std::size_t process) {
    const TimePoint deadline = clock_.now() + kLastWordsTime;
    receive_all();
    while (!monitor_.stopping() && monitor_.still_there(process) && clock_.now() < deadline) {
      zmq::pollitem_t item{socket_.handle(), 0, ZMQ_POLLIN, 0};
      zmq::poll(&item, 1, std::chrono::ceil<std::chrono::milliseconds>(deadline - clock_.now()));
      receive_all();
    }
  }

  // What carried the processes has nothing left to carry once they have all ended.
  void end_carriers(TimePoint now) {
    if (!monitor_.over()) return;
    if (!all_ended_) all_ended_ = now;
    if (now - *all_ended_ < kCarrierPatience) return;
    for (const StartedChild& child : children_) kill(child.pid, SIGKILL);
  }

  void look_at_children() {
    std::erase_if(children_, [&](const StartedChild& child) {
      int status = 0;
      if (waitpid(child.pid, &status, WNOHANG) != child.pid) return false;
      ProcessEnd end;
      if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
      if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
      if (child.process) {
        if (!end.signal) hear_last_words(*child.process);
        monitor_.on_end(*child.process, end, clock_.now());
      } else {
        if (!end.signal) look_at_grandchildren();
        monitor_.on_carrier_end(carried_, end, child.name, last_line_of(child.log_file), clock_.now());
      }
      return true;
    });
  }

  // Processes whose parent is not we: they can be seen to end, but not how.
  void look_at_grandchildren() {
    for (std::size_t i = 0; i < handles_.size(); ++i) {
      if (!handles_[i].open()) continue;
      zmq::pollitem_t item{nullptr, handles_[i].get(), ZMQ_POLLIN, 0};
      zmq::poll(&item, 1, std::chrono::milliseconds(0));
      if (item.revents == 0) continue;
      handles_[i] = FileDescriptor();
      hear_last_words(i);
      monitor_.on_end(i, {}, clock_.now());
    }
  }

  struct Group {
    std::map<int, std::string> members;
    std::vector<std::size_t> askers;
  };

  const RunConfig& config_;
  const JobPlan& plan_;
  RunObserver& observer_;
  Interrupts& interrupts_;
  SteadyClock clock_;
  RunMonitor monitor_;
  zmq::context_t context_;
  zmq::socket_t socket_;
  std::map<std::string, std::size_t> by_identity_;
  std::vector<StartedChild> children_;       // still running
  std::vector<std::size_t> carried_;         // processes that are not our children
  std::vector<FileDescriptor> handles_;      // pidfds of processes that are not our children, by process
  std::vector<bool> greeted_;                // by process: it has said hello
  std::vector<std::vector<Outgoing>> held_;  // by process: what it gets with the welcome
  std::map<std::string, Group> groups_;
  std::map<std::int64_t, bool> epochs_;  // whether to train it, once decided
  std::vector<std::size_t> waiting_to_train_;
  std::optional<TimePoint> all_ended_;
  bool training_begun_ = false;
  std::vector<std::size_t> waiting_to_finish_;
  std::optional<std::size_t> hands_in_;  // who was asked for the final weights
  bool final_received_ = false;
  std::int64_t dropped_ = 0;
  RunOutcome outcome_;
};

}  // namespace

Result<RunOutcome> coordinate(const RunConfig& config, const JobPlan& plan, const CoordinatorOptions& options,
                              Launcher& launcher, RunObserver& observer, Interrupts& interrupts) {
  try {
    return Coordinator(config, plan, observer, interrupts).run(launcher, options);
  } catch (const zmq::error_t& error) {
    return Status(Code::kInternal, fmt::format("the coordinator's socket: {}", error.what()));
  }
}

}  // namespace syncopate::experiments
