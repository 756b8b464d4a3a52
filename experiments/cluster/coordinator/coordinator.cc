#include "experiments/cluster/coordinator/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <utility>
#include <variant>

#include "common/os/exhaustion.h"
#include "experiments/checkpoint/checkpoint.h"
#include "experiments/checkpoint/run_facts.h"
#include "experiments/cluster/control/control_thread.h"
#include "experiments/cluster/control/trace_records.h"
#include "experiments/cluster/control/wire_records.h"
#include "experiments/cluster/coordinator/batch_queue.h"
#include "experiments/cluster/coordinator/epoch_schedule.h"
#include "experiments/cluster/coordinator/fault_injector.h"
#include "experiments/cluster/coordinator/rendezvous_groups.h"
#include "experiments/cluster/coordinator/run_checkpoints.h"
#include "experiments/cluster/coordinator/worker_weights.h"
#include "experiments/config/toml.h"

namespace syncopate::experiments {
namespace {

using control::FromCoordinator;
using control::ToCoordinator;

constexpr Duration kTick = std::chrono::milliseconds(100);
// How long mpirun has to end itself once its processes have ended.
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
  Coordinator(const ResolvedRun& config, const JobPlan& plan, const CoordinatorOptions& options,
              ClusterRuntime& runtime, RunObserver& observer)
      : config_(config),
        plan_(plan),
        options_(options),
        runtime_(runtime),
        observer_(observer),
        clock_(runtime.threads().clock()),
        control_(runtime.control()),
        monitor_(plan,
                 {.recovery = recovery_of(config),
                  .timeout = from_seconds(config.timeout_seconds),
                  .stalls = {.warning = stall_warning_of(config),
                             .heartbeat =
                                 heartbeat_interval(from_seconds(config.timeout_seconds), stall_warning_of(config))},
                  .resume = options.resume,
                  .has_target = config.target_accuracy > 0},
                 clock_.now()),
        clock_offsets_(plan.processes.size()),
        takes_snapshots_(plan.processes.size()),
        traces_(plan.processes.size(), trace_capacity_of(config)),
        epochs_(config.stop_at_target ? config.target_accuracy : 0),
        weights_(plan, options.local_state_size, has_replicas_of_their_own(config) ? config.workers : 0, monitor_,
                 control_, observer),
        checkpoints_(config, options.local_state_size > 0),
        faults_(config, options.total_steps, plan, hands()) {
    if (shares_work(config)) {
      batches_.emplace(options.total_steps * config.workers, config.workers, options.batches_done);
    }
  }

  Result<RunOutcome> run() {
    SYNCOPATE_RETURN_IF_ERROR(checkpoints_.open(options_.checkpoints, checkpoint_callbacks(), runtime_.threads()));
    SYNCOPATE_RETURN_IF_ERROR(runtime_.start());
    while (!monitor_.over() || !runtime_.empty()) {
      runtime_.wait_for_news(std::min(kTick, std::max(Duration::zero(), faults_.next() - clock_.now())));
      if (const Duration absence = monitor_.notice_absence(clock_.now()); all_ended_) *all_ended_ += absence;
      if (runtime_.take_interrupt()) monitor_.on_interrupt(clock_.now());
      receive_all();
      for (const EndedChild& ended : runtime_.take_ended()) on_ended(ended);
      const TimePoint now = clock_.now();
      if (const std::string shortage = runtime_.take_shortage(); !shortage.empty()) report(shortage);
      if (Status status = observer_.on_tick(now); !status.ok()) monitor_.on_output_failure(status, now);
      monitor_.on_tick(now);
      if (monitor_.stopping()) faults_.end();
      faults_.act(now);
      for (const MonitorAction& action : monitor_.take_actions()) {
        std::visit([this](const auto& one) { act(one); }, action);
      }
      checkpoints_.act(now);
      weights_.pass_on();
      tell_snapshot_terms();
      end_carriers(now);
    }
    report_untrained();
    outcome_.checkpoints = checkpoints_.finish(clock_.now());
    outcome_.verdict = monitor_.verdict();
    outcome_.stopped_at_target = epochs_.has_ended();
    outcome_.lost_evaluator = monitor_.evaluations().given_up();
    outcome_.is_final_evaluated = !monitor_.evaluations().is_final_missing();
    faults_.end();
    outcome_.faults = faults_.records();
    if (control_.dropped() > 0) outcome_.rejected_connections["coordinator"] = control_.dropped();
    return outcome_;
  }

 private:
  // Returns how faults are injected into the processes.
  FaultInjector::Hands hands() {
    return {.still_there = [this](std::size_t process) { return monitor_.still_there(process); },
            .trains = [this](std::size_t process) { return monitor_.trains(process); },
            .signal = [this](std::size_t process, int signal) { return runtime_.signal_process(process, signal); },
            .impair_links =
                [this](std::size_t process, LinkFault fault, Duration length) {
                  FromCoordinator message;
                  message.mutable_impair_links()->set_fault(to_wire(fault));
                  message.mutable_impair_links()->set_length(length.count());
                  control_.send(process, message);
                },
            .report =
                [this](const std::string& line) {
                  observer_.on_fault();
                  observer_.on_report(line);
                }};
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
      case ToCoordinator::kHeartbeat:
        return on_heartbeat(process, message.heartbeat(), now);
      case ToCoordinator::kSteps:
        return on_steps(process, message.steps(), now);
      case ToCoordinator::kEpochQuestion:
        return on_epoch_question(process, message.epoch_question().epoch(), now);
      case ToCoordinator::kJoinRequest:
        return on_join_request(process, message.join_request().after(), now);
      case ToCoordinator::kTrouble: {
        const control::Failure& failure = message.trouble().failure();
        return monitor_.on_trouble(process, message.trouble().membership_epoch(), from_wire(failure),
                                   failure.operation(), failure.step(), now);
      }
      case ToCoordinator::kMissingWorker:
        return monitor_.on_missing(process, message.missing_worker().membership_epoch(),
                                   message.missing_worker().rank(), Duration(message.missing_worker().waited()), now);
      case ToCoordinator::kCheckpointReport:
        return checkpoints_.on_report(message.checkpoint_report().writer(), from_wire(message.checkpoint_report()));
      case ToCoordinator::kLocalState:
        return weights_.on_local_state(process, message.local_state());
      case ToCoordinator::kSnapshot:
        return weights_.on_snapshot(process, message.snapshot(), std::move(weights), clock_offsets_[process]);
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
      case ToCoordinator::kStepAnnouncement:
        return on_step_announcement(process, message.step_announcement().step(), now);
      case ToCoordinator::kBatchRequest:
        return on_batch_request(process, message.batch_request());
      case ToCoordinator::kLeaveQuestion: {
        monitor_.on_leaving(process);
        FromCoordinator answer;
        answer.mutable_leave_answer();
        return control_.send(process, answer);
      }
      case ToCoordinator::kFinishQuestion:
        monitor_.on_training_over(process, now);
        return weights_.on_finish_question(process);
      case ToCoordinator::kTrace:
        return on_trace(process, message.trace());
      case ToCoordinator::kFinished:
        return on_finished(process, message.finished(), now);
      case ToCoordinator::kFailure:
        return monitor_.on_failure(process, from_wire(message.failure()), message.failure().operation(),
                                   message.failure().step(), now);
      case ToCoordinator::KIND_NOT_SET:
        return;
    }
  }

  void welcome(std::size_t process, const control::Hello& hello, TimePoint now) {
    if (hello.run_id() != plan_.run_id) return;
    const ProcessSpec& spec = plan_.processes[process];
    const std::optional<pid_t> pid = runtime_.check_hello(process, static_cast<pid_t>(hello.pid()));
    if (!pid) {
      return monitor_.on_failure(process,
                                 {Code::kInternal, fmt::format("says that its pid is {}, which is no process "
                                                               "that this run has started",
                                                               hello.pid())},
                                 "starting", 0, now);
    }
    // A user knows another host by the name that they have given it.
    monitor_.on_hello(process, *pid, spec.remote ? spec.host : hello.host(), now);
    control::Welcome welcome;
    welcome.set_config_toml(to_toml(config_));
    if (options_.checkpoints) {
      welcome.set_checkpoints(options_.checkpoints->folder);
      welcome.set_checkpoint_digests(options_.checkpoints->key.has_value());
    }
    welcome.set_resumed_checkpoint(options_.resume);
    welcome.set_resumed_digest(options_.resume_digest);
    const std::vector<std::int64_t> announced = faults_.announced_steps(process);
    welcome.mutable_announced_steps()->Add(announced.begin(), announced.end());
    control_.welcome(process, std::move(welcome));
  }

  void on_heartbeat(std::size_t process, const control::Heartbeat& beat, TimePoint now) {
    monitor_.on_heartbeat(process, beat.operation(), beat.step(),
                          beat.has_collective() ? std::optional(from_wire(beat.collective())) : std::nullopt, now);
    FromCoordinator answer;
    answer.mutable_alive();
    control_.send(process, answer);
  }

  void on_steps(std::size_t process, const control::Steps& steps, TimePoint now) {
    const ProcessSpec& spec = plan_.processes[process];
    if (spec.role != Role::kWorker) return;
    std::vector<StepRecord> records;
    for (const control::Step& step : steps.steps()) {
      records.push_back(from_wire(step));
      records.back().end += clock_offsets_[process];
    }
    if (!records.empty()) {
      faults_.on_steps(process, records.back().step + 1, now);
      if (batches_) {
        for (const StepRecord& record : records) batches_->finish(spec.rank, record.position);
        checkpoints_.on_job_steps(batches_->done() / config_.workers, now);
      } else if (monitor_.still_there(process)) {  // reports of a worker that was lost meanwhile are ignored
        checkpoints_.on_steps(spec.rank, records.back().step + 1, now);
      }
      monitor_.on_step_finished(process, steps.steps().rbegin()->membership_epoch());
    }
    observer_.on_steps(spec.rank, records);
  }

  void on_trace(std::size_t process, const control::Trace& trace) {
    if (!config_.trace) return;
    const TraceInbox::Batch batch = traces_.take(process, trace, clock_offsets_[process]);
    observer_.on_trace(plan_.processes[process].name(), batch.events, batch.dropped);
  }

  // A request from another membership epoch is not answered: the worker asks again.
  void on_batch_request(std::size_t process, const control::BatchRequest& request) {
    const bool is_now = request.membership_epoch() == monitor_.membership().number && monitor_.still_there(process);
    if (!batches_ || !is_now) return;
    const int rank = plan_.processes[process].rank;
    if (request.anew()) {
      const std::vector<std::int64_t> held(request.held().begin(), request.held().end());
      batches_->hold_only(rank, held);
    }
    FromCoordinator answer;
    control::BatchLease& lease = *answer.mutable_batch_lease();
    lease.set_number(request.number());
    if (const std::optional<BatchRange> drawn = batches_->draw(rank, request.wanted())) {
      lease.set_begin(drawn->begin);
      lease.set_end(drawn->end);
    }
    control_.send(process, answer);
  }

  // In a run that was resumed, this is what was done at that time.
  void go_back_to(const std::string& checkpoint) {
    const bool is_resumed = checkpoint == options_.resume;
    const Result<Checkpoint> opened =
        Checkpoint::open(checkpoint, {.digest = is_resumed ? options_.resume_digest : std::string()});
    // If it cannot be read, the workers, which also read it, report why.
    if (opened.ok()) batches_->go_back(batches_done(opened->manifest(), config_));
  }

  // A worker that is lost after the others have left cannot be replaced.
  void report_untrained() {
    if (!batches_ || monitor_.verdict() || epochs_.has_ended()) return;
    const std::int64_t missing = batches_->batches() - batches_->done();
    if (missing <= 0) return;
    report(
        fmt::format("{} of the job's {} batches were not trained: whoever had drawn them was lost when no other "
                    "worker was there any more",
                    missing, batches_->batches()));
  }

  void on_step_announcement(std::size_t process, std::int64_t step, TimePoint now) {
    monitor_.on_heartbeat(process, "beginning a step", step, std::nullopt, now);
    faults_.on_step_begins(process, step, now);
    FromCoordinator answer;
    answer.mutable_step_answer()->set_step(step);
    control_.send(process, answer);
  }

  void on_finished(std::size_t process, const control::Finished& finished, TimePoint now) {
    outcome_.server_updates += finished.server().updates();
    if (finished.server().pushes() > 0) {
      outcome_.servers.insert_or_assign(plan_.processes[process].rank, from_wire(finished.server()));
    }
    const std::string name = plan_.processes[process].name();
    if (finished.server().dropped() > 0) outcome_.rejected_connections[name] += finished.server().dropped();
    outcome_.peak_memory[name] = finished.peak_memory();
    monitor_.on_finished(process, now);
  }

  void tell_time(std::size_t process, const control::ClockQuestion& question, TimePoint received) {
    FromCoordinator answer;
    answer.mutable_clock_answer()->set_sent(question.sent());
    answer.mutable_clock_answer()->set_received(received.time_since_epoch().count());
    answer.mutable_clock_answer()->set_answered(clock_.now().time_since_epoch().count());
    control_.send(process, answer);
  }

  void publish(std::size_t process, const control::Publish& publish) {
    std::optional<RendezvousGroups::Answer> complete = groups_.publish(process, publish);
    if (!complete) return;
    FromCoordinator answer;
    *answer.mutable_members() = std::move(complete->members);
    for (std::size_t asker : complete->askers) control_.send(asker, answer);
  }

  void on_join_request(std::size_t process, std::int64_t after, TimePoint now) {
    if (monitor_.is_member(process) && monitor_.still_there(process) && monitor_.membership().number > after) {
      return send_membership(process);
    }
    monitor_.on_join_request(process, now);
  }

  void send_membership(std::size_t process) {
    FromCoordinator message;
    *message.mutable_membership() = to_wire(monitor_.membership());
    control_.send(process, message);
  }

  // Questions of an earlier membership epoch are not answered any more: processes that are still there ask again.
  void proclaim() {
    groups_.begin_membership(monitor_.membership().number);
    epochs_.begin_membership();
    if (batches_ && !monitor_.membership().restore.empty()) go_back_to(monitor_.membership().restore);
    if (epochs_.has_begun()) checkpoints_.begin(monitor_.membership(), clock_.now());
    for (std::size_t i = 0; i < plan_.processes.size(); ++i) {
      if (monitor_.is_member(i) && monitor_.still_there(i)) send_membership(i);
    }
  }

  void start_again(std::size_t process) {
    takes_snapshots_[process] = false;
    const Status started = runtime_.start_again(process);
    if (started.ok()) {
      if (plan_.processes[process].role == Role::kEvaluator) weights_.send_again();
      return;
    }
    observer_.on_report(
        fmt::format("{} cannot be started again: {}", plan_.processes[process].name(), started.message()));
    monitor_.on_end(process, {}, clock_.now());
  }

  void on_epoch_question(std::size_t process, std::int64_t epoch, TimePoint now) {
    if (epochs_.has_begun()) return answer_epoch({process, epoch});
    epochs_.hold({process, epoch});
    monitor_.on_ready_to_train(process, now);
  }

  void answer_epoch(const EpochSchedule::Question& question) {
    const auto [process, epoch] = question;
    FromCoordinator answer;
    answer.mutable_epoch_answer()->set_epoch(epoch);
    const bool goes_on = epochs_.go_on(epoch);
    answer.mutable_epoch_answer()->set_go_on(goes_on);
    takes_snapshots_[process] = goes_on && is_to_take_snapshots(process);
    answer.mutable_epoch_answer()->set_snapshots(takes_snapshots_[process]);
    answer.mutable_epoch_answer()->set_elapsed((clock_.now() - training_began_).count());
    control_.send(process, answer);
  }

  // One worker is enough, unless each has weights of its own, whose mean is evaluated.
  bool is_to_take_snapshots(std::size_t process) {
    return (has_replicas_of_their_own(config_) || monitor_.chief() == process) && monitor_.wants_snapshots();
  }

  // Tells workers for which this has changed: the evaluator has fallen behind or caught up, or there is another chief.
  void tell_snapshot_terms() {
    if (!epochs_.has_begun() || monitor_.stopping()) return;
    for (std::size_t i = 0; i < plan_.processes.size(); ++i) {
      if (plan_.processes[i].role != Role::kWorker || !monitor_.trains(i)) continue;
      const bool wanted = is_to_take_snapshots(i);
      if (takes_snapshots_[i] == wanted) continue;
      takes_snapshots_[i] = wanted;
      FromCoordinator message;
      message.mutable_snapshot_terms()->set_wanted(wanted);
      control_.send(i, message);
    }
  }

  void on_evaluation(const control::Evaluation& evaluation, TimePoint now) {
    const control::Snapshot& stamp = evaluation.snapshot();
    weights_.on_evaluated(stamp);
    if (!monitor_.on_evaluation(stamp.point(), stamp.final(), now)) return;
    const EvaluationScores scores = scores_of(evaluation);
    observer_.on_evaluation({.steps_done = stamp.steps_done(),
                             .taken = TimePoint(Duration(stamp.taken())),
                             .final = stamp.final(),
                             .accuracy = scores.accuracy,
                             .loss = scores.loss,
                             .figures = scores.figures,
                             .validation = scores.validation});
    epochs_.on_evaluation(target_figure_of(scores.accuracy, scores.figures, scores.validation));
  }

  // Each carries out one action of the monitor.

  void act(const StopAll& stop) {
    FromCoordinator message;
    message.mutable_stop()->set_reason(stop.reason);
    for (std::size_t i = 0; i < plan_.processes.size(); ++i) control_.send(i, message);
  }
  void act(const KillProcess& kill) { runtime_.kill_process(kill.process); }
  void act(const RestartProcess& restart) { start_again(restart.process); }
  void act(const DropWorker& drop) {
    observer_.on_worker_lost(drop.rank);
    checkpoints_.on_worker_lost(drop.rank);
    if (batches_) batches_->hold_only(drop.rank, {});
    FromCoordinator message;
    message.mutable_worker_lost()->set_rank(drop.rank);
    for (std::size_t i = 0; i < plan_.processes.size(); ++i) {
      if (serves(plan_.processes[i].role)) control_.send(i, message);
    }
    weights_.on_worker_lost();
  }
  void act(const AddWorker& add) { observer_.on_worker_joined(add.rank); }
  void act(const ReleaseTraining&) { begin_training(); }
  void act(const BeginMembershipEpoch&) { proclaim(); }
  void act(const ReportLine& line) { report(line.text); }

  void begin_training() {
    training_began_ = clock_.now();
    observer_.on_training_begins(training_began_);
    checkpoints_.begin(monitor_.membership(), clock_.now());
    faults_.on_training_begins(clock_.now());
    for (const EpochSchedule::Question& question : epochs_.begin()) answer_epoch(question);
  }

  void report(const std::string& line) {
    outcome_.reports.push_back(line);
    observer_.on_report(line);
  }

  CheckpointKeeper::Callbacks checkpoint_callbacks() {
    return {.order = [this](std::int64_t membership, std::int64_t step) { order_checkpoint(membership, step); },
            .report = [this](const std::string& line) { report(line); },
            .completed = [this](const std::string& folder) { monitor_.on_checkpoint(folder); }};
  }

  void order_checkpoint(std::int64_t membership, std::int64_t step) {
    FromCoordinator message;
    message.mutable_checkpoint_order()->set_membership_epoch(membership);
    message.mutable_checkpoint_order()->set_step(step);
    for (std::size_t i = 0; i < plan_.processes.size(); ++i) {
      if (monitor_.is_member(i) && monitor_.still_there(i)) control_.send(i, message);
    }
  }

  // Processes.

  void on_ended(const EndedChild& ended) {
    if (!ended.process) {
      return monitor_.on_carrier_end(runtime_.carried(), ended.end, ended.name, last_line_of(ended.log_file),
                                     clock_.now());
    }
    // A process that ends well has said so. Its message may arrive late, since it may follow gigabytes of weights.
    const Duration patience = std::max(
        options_.last_words_time, ended.end.exit_code == 0 ? from_seconds(config_.timeout_seconds) / 2 : Duration());
    if (!ended.end.signal) hear_last_words(*ended.process, patience);
    ProcessEnd end = ended.end;
    if (end.has_last_words()) end.last_words = last_line_of(ended.log_file);
    monitor_.on_end(*ended.process, end, clock_.now());
  }

  // Receives what a process that was not killed sent before it ended.
  void hear_last_words(std::size_t process, Duration patience) {
    const TimePoint deadline = clock_.now() + patience;
    receive_all();
    while (!monitor_.stopping() && monitor_.still_there(process) && clock_.now() < deadline) {
      runtime_.wait_for_message(deadline - clock_.now());
      receive_all();
    }
  }

  // What carried the processes has nothing left to carry once they have all ended.
  void end_carriers(TimePoint now) {
    if (!monitor_.over()) return;
    if (!all_ended_) all_ended_ = now;
    if (now - *all_ended_ >= kCarrierPatience) runtime_.kill_all();
  }

  const ResolvedRun& config_;
  const JobPlan& plan_;
  const CoordinatorOptions& options_;
  ClusterRuntime& runtime_;
  RunObserver& observer_;
  const Clock& clock_;
  ControlServer& control_;
  RunMonitor monitor_;
  std::vector<Duration> clock_offsets_;  // by process: added to its time stamps to convert them to our clock
  std::vector<bool> takes_snapshots_;    // by process: what it was told last
  TraceInbox traces_;
  TimePoint training_began_{};
  std::optional<TimePoint> all_ended_;
  RendezvousGroups groups_;
  EpochSchedule epochs_;
  WorkerWeights weights_;
  RunCheckpoints checkpoints_;
  FaultInjector faults_;
  std::optional<BatchQueue> batches_;  // set if workers share the job's batches
  RunOutcome outcome_;
};

}  // namespace

Result<RunOutcome> coordinate(const ResolvedRun& config, const JobPlan& plan, const CoordinatorOptions& options,
                              ClusterRuntime& runtime, RunObserver& observer) {
  std::optional<Result<RunOutcome>> outcome;
  const Status status = caught([&] { outcome = Coordinator(config, plan, options, runtime, observer).run(); });
  return status.ok() ? std::move(*outcome) : Result<RunOutcome>(status.in("run_experiment itself"));
}

}  // namespace syncopate::experiments
