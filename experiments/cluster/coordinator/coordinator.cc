#include "experiments/cluster/coordinator/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <variant>

#include "common/os/exhaustion.h"
#include "common/text/log.h"
#include "experiments/checkpoint/run_facts.h"
#include "experiments/cluster/control/control_thread.h"
#include "experiments/cluster/control/packed_steps.h"
#include "experiments/cluster/control/records_interval.h"
#include "experiments/cluster/control/trace_records.h"
#include "experiments/cluster/control/wire_records.h"
#include "experiments/cluster/coordinator/fault_injector.h"
#include "experiments/cluster/coordinator/process_clocks.h"
#include "experiments/cluster/coordinator/process_ends.h"
#include "experiments/cluster/coordinator/rendezvous_groups.h"
#include "experiments/cluster/coordinator/run_checkpoints.h"
#include "experiments/cluster/coordinator/shared_batches.h"
#include "experiments/cluster/coordinator/termination.h"
#include "experiments/cluster/coordinator/training_terms.h"
#include "experiments/cluster/coordinator/worker_weights.h"
#include "experiments/config/toml.h"

namespace syncopate::experiments {
namespace {

using control::FromCoordinator;
using control::ToCoordinator;

constexpr Duration kTick = std::chrono::milliseconds(100);
constexpr int kSmallRun = 32;  // processes
constexpr Duration kRoundOfAProcess = std::chrono::microseconds(20);

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
        clocks_(plan, clock_, control_),
        traces_(plan.processes.size(), trace_capacity_of(config)),
        terms_(config, plan, monitor_, control_),
        weights_(plan, options.local_state_size, has_replicas_of_their_own(config) ? config.workers : 0,
                 !config.faults.may(LinkFault::kReorder) && !config.faults.may(LinkFault::kDelay),
                 gathers_weights(config), monitor_, control_, observer),
        checkpoints_(config, options.local_state_size > 0),
        termination_(config.grace_seconds, monitor_, checkpoints_, [this](const std::string& line) { report(line); }),
        health_(config.on_nan, moves_together(config)),
        faults_(config, options.total_steps, plan, hands_on(runtime, monitor_, observer)),
        ends_(runtime, monitor_,
              {.last_words = options.last_words_time, .finished = from_seconds(config.timeout_seconds) / 2},
              [this] { receive_all(); }) {
    if (shares_work(config)) {
      batches_.emplace(config, plan,
                       BatchQueue(options.total_steps * config.workers, config.workers, options.batches_done), monitor_,
                       control_);
    }
  }

  Result<RunOutcome> run() {
    SYNCOPATE_RETURN_IF_ERROR(checkpoints_.open(options_.checkpoints, checkpoint_callbacks(), runtime_.threads()));
    SYNCOPATE_RETURN_IF_ERROR(runtime_.start());
    while (!monitor_.over() || !runtime_.empty()) {
      wait_for_news();
      ends_.forgive(monitor_.notice_absence(clock_.now()));
      if (const auto signal = runtime_.take_interrupt()) termination_.on_signal(*signal, clock_.now());
      receive_all();
      ends_.take();
      carry_out_actions();
      const TimePoint now = clock_.now();
      awaits_round_ = now < next_round_ && now < faults_.next();
      if (awaits_round_) continue;
      next_round_ = now + round_interval();
      if (const std::string shortage = runtime_.take_shortage(); !shortage.empty()) report(shortage);
      if (Status status = observer_.on_tick(now); !status.ok()) monitor_.on_output_failure(status, now);
      monitor_.on_tick(now);
      tell_health(now);
      if (monitor_.stopping()) faults_.end();
      faults_.act(now);
      carry_out_actions();
      checkpoints_.act(now);
      termination_.act(now);
      weights_.pass_on();
      terms_.tell_changes();
      ends_.end_carriers(now);
      if (const std::string notice = traffic_.take_notice(control_.traffic(), now); !notice.empty()) report(notice);
    }
    report_untrained();
    outcome_.clock_uncertainty = clocks_.uncertainty();
    outcome_.checkpoints = checkpoints_.finish(clock_.now());
    outcome_.verdict = monitor_.verdict();
    outcome_.stopped_at_target = terms_.has_ended_early();
    outcome_.lost_evaluator = monitor_.evaluations().given_up();
    outcome_.is_final_evaluated = !monitor_.evaluations().is_final_missing();
    faults_.end();
    outcome_.faults = faults_.records();
    tell_last_of_health();
    outcome_.health = health_.record();
    if (control_.dropped() > 0) outcome_.rejected_connections["coordinator"] = control_.dropped();
    return outcome_;
  }

 private:
  void wait_for_news() {
    const TimePoint now = clock_.now();
    const TimePoint next = std::min(faults_.next(), awaits_round_ ? next_round_ : now + kTick);
    runtime_.wait_for_news(std::max(Duration::zero(), next - now));
  }

  // A round looks at all processes. In a small run there is one after each message; in a large one it would take most
  // of the time.
  Duration round_interval() const {
    return std::max(0, static_cast<int>(plan_.processes.size()) - kSmallRun) * kRoundOfAProcess;
  }

  void carry_out_actions() {
    for (const MonitorAction& action : monitor_.take_actions()) {
      std::visit([this](const auto& one) { act(one); }, action);
    }
  }

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
        return terms_.on_epoch_question(process, message.epoch_question().epoch(), now);
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
        return on_checkpoint_report(process, message.checkpoint_report());
      case ToCoordinator::kLocalState:
        return weights_.on_local_state(process, message.local_state());
      case ToCoordinator::kSnapshot:
        return weights_.on_snapshot(process, message.snapshot(), std::move(weights), clocks_.offset(process));
      case ToCoordinator::kEvaluation:
        return on_evaluation(message.evaluation(), now);
      case ToCoordinator::kNotFinite:
        if (const std::optional<worker::NotFinite> what = from_wire(message.not_finite())) {
          health_.on_report(plan_.processes[process].name(), *what, now);
        }
        return;
      case ToCoordinator::kFact:
        return observer_.on_fact(message.fact().name(), message.fact().value());
      case ToCoordinator::kClockQuestion:
        return clocks_.on_question(process, message.clock_question(), now);
      case ToCoordinator::kClockReport:
        return clocks_.on_report(process, message.clock_report());
      case ToCoordinator::kStepAnnouncement:
        return on_step_announcement(process, message.step_announcement().step(), now);
      case ToCoordinator::kBatchRequest:
        if (batches_) batches_->on_request(process, message.batch_request());
        return;
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
      welcome.set_last_step(options_.total_steps);
    }
    welcome.set_resumed_checkpoint(options_.resume);
    welcome.set_resumed_digest(options_.resume_digest);
    if (const Duration every = records_interval(config_.workers); every > records_interval(1)) {
      welcome.set_records_every(every.count());
      welcome.set_records_from(every.count() * spec.rank / config_.workers);
    }
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

  void on_checkpoint_report(std::size_t process, const control::CheckpointReport& wire) {
    CheckpointReport report = from_wire(wire);
    report.taken += clocks_.offset(process);
    checkpoints_.on_report(wire.writer(), report);
  }

  void on_steps(std::size_t process, const control::Steps& steps, TimePoint now) {
    const ProcessSpec& spec = plan_.processes[process];
    if (spec.role != Role::kWorker) return;
    const Result<std::vector<SentStep>> sent = unpack_steps(steps.packed());
    if (!sent.ok()) return log_warning("dropped from {}: {}", spec.name(), sent.status().message());
    std::vector<StepRecord> records;
    for (const SentStep& step : *sent) {
      records.push_back(step.record);
      records.back().end += clocks_.offset(process);
    }
    if (!records.empty()) {
      faults_.on_steps(process, records.back().step + 1, now);
      if (batches_) {
        for (const StepRecord& record : records) batches_->on_trained(spec.rank, record.position);
        checkpoints_.on_job_steps(batches_->steps_done(), now);
      } else if (monitor_.still_there(process)) {  // reports of a worker that was lost meanwhile are ignored
        checkpoints_.on_steps(spec.rank, records.back().step + 1, now);
      }
      monitor_.on_step_finished(process, sent->back().membership_epoch, records.back().step + 1);
    }
    traffic_.begin(control_.traffic(), now);
    observer_.on_steps(spec.rank, records);
  }

  void on_trace(std::size_t process, const control::Trace& trace) {
    if (!config_.trace) return;
    const TraceInbox::Batch batch = traces_.take(process, trace, clocks_.offset(process));
    observer_.on_trace(plan_.processes[process].name(), batch.events, batch.dropped);
  }

  // A worker that is lost after the others have left cannot be replaced.
  void report_untrained() {
    if (!batches_ || monitor_.verdict() || terms_.has_ended_early()) return;
    if (const std::string line = batches_->untrained(); !line.empty()) report(line);
  }

  void on_step_announcement(std::size_t process, std::int64_t step, TimePoint now) {
    monitor_.on_heartbeat(process, "beginning a step", step, std::nullopt, now);
    faults_.on_step_begins(process, step, now);
    FromCoordinator answer;
    answer.mutable_step_answer()->set_step(step);
    answer.mutable_step_answer()->set_plant_nan(faults_.take_planted(process));
    control_.send(process, answer);
  }

  void tell_health(TimePoint now) {
    if (monitor_.stopping()) return;
    const std::optional<HealthWatch::Finding> finding = health_.take_due(now);
    if (!finding) return;
    observer_.on_not_finite(finding->step, finding->line);
    finding->ends_run ? monitor_.on_not_finite(finding->line, now) : report(finding->line);
  }

  // All processes have ended: it may have been found in the last weights.
  void tell_last_of_health() {
    const std::optional<HealthWatch::Finding> finding = health_.take_due(clock_.now(), true);
    if (!finding) return;
    observer_.on_not_finite(finding->step, finding->line);
    if (!finding->ends_run || outcome_.verdict) return report(finding->line);
    outcome_.verdict = Verdict{ExitCode::kNotFinite, finding->line};
  }

  void on_finished(std::size_t process, const control::Finished& finished, TimePoint now) {
    const ServerFigures figures = from_wire(finished);
    outcome_.server_updates += figures.updates;
    if (figures.pushes > 0) outcome_.servers.insert_or_assign(plan_.processes[process].rank, figures);
    const std::string name = plan_.processes[process].name();
    if (figures.dropped > 0) outcome_.rejected_connections[name] += figures.dropped;
    if (!plan_.processes[process].within) outcome_.peak_memory[name] = finished.peak_memory();
    monitor_.on_finished(process, now);
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
      return control_.send(process, membership());
    }
    monitor_.on_join_request(process, now);
  }

  FromCoordinator membership() const {
    FromCoordinator message;
    *message.mutable_membership() = to_wire(monitor_.membership());
    return message;
  }

  void send_to_members(const FromCoordinator& message) {
    for (std::size_t i = 0; i < plan_.processes.size(); ++i) {
      if (monitor_.is_member(i) && monitor_.still_there(i)) control_.send(i, message);
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
    terms_.on_evaluation(target_figure_of(scores.accuracy, scores.figures, scores.validation));
  }

  // Each carries out one action of the monitor.

  void act(const StopAll& stop) {
    FromCoordinator message;
    message.mutable_stop()->set_reason(stop.reason);
    for (std::size_t i = 0; i < plan_.processes.size(); ++i) control_.send(i, message);
  }
  void act(const KillProcess& kill) { runtime_.kill_process(kill.process); }
  void act(const RestartProcess& restart) {
    const ProcessSpec& spec = plan_.processes[restart.process];
    terms_.on_start_again(restart.process);
    const Status started = runtime_.start_again(restart.process);
    if (!started.ok()) {
      observer_.on_report(fmt::format("{} cannot be started again: {}", spec.name(), started.message()));
      return monitor_.on_end(restart.process, {}, clock_.now());
    }
    if (spec.role == Role::kEvaluator) weights_.send_again();
  }
  void act(const DropWorker& drop) {
    observer_.on_worker_lost(drop.rank);
    checkpoints_.on_worker_lost(drop.rank);
    if (batches_) batches_->on_worker_lost(drop.rank);
    FromCoordinator message;
    message.mutable_worker_lost()->set_rank(drop.rank);
    for (std::size_t i = 0; i < plan_.processes.size(); ++i) {
      if (serves(plan_.processes[i].role)) control_.send(i, message);
    }
    weights_.on_worker_lost();
  }
  void act(const AddWorker& add) { observer_.on_worker_joined(add.rank); }
  void act(const ReleaseTraining&) {
    const TimePoint now = clock_.now();
    observer_.on_training_begins(now);
    checkpoints_.begin(monitor_.membership(), now);
    faults_.on_training_begins(now);
    terms_.begin(now);
  }
  // Questions of an earlier membership epoch are not answered any more: processes that are still there ask again.
  void act(const BeginMembershipEpoch&) {
    groups_.begin_membership(monitor_.membership().number);
    terms_.begin_membership();
    if (const std::string& restored = monitor_.membership().restore; batches_ && !restored.empty()) {
      // A run that was resumed begins from a checkpoint that it has not written itself.
      batches_->go_back_to(restored, restored == options_.resume ? options_.resume_digest : std::string());
    }
    if (terms_.has_begun()) checkpoints_.begin(monitor_.membership(), clock_.now());
    send_to_members(membership());
  }
  void act(const ReportLine& line) { report(line.text); }

  void report(const std::string& line) {
    outcome_.reports.push_back(line);
    observer_.on_report(line);
  }

  CheckpointKeeper::Callbacks checkpoint_callbacks() {
    return {.order =
                [this](std::int64_t membership, std::int64_t step) {
                  FromCoordinator message;
                  message.mutable_checkpoint_order()->set_membership_epoch(membership);
                  message.mutable_checkpoint_order()->set_step(step);
                  send_to_members(message);
                },
            .report = [this](const std::string& line) { report(line); },
            .completed = [this](const std::string& folder) { monitor_.on_checkpoint(folder); }};
  }

  const ResolvedRun& config_;
  const JobPlan& plan_;
  const CoordinatorOptions& options_;
  ClusterRuntime& runtime_;
  RunObserver& observer_;
  const Clock& clock_;
  ControlServer& control_;
  RunMonitor monitor_;
  ProcessClocks clocks_;
  TraceInbox traces_;
  RendezvousGroups groups_;
  TrainingTerms terms_;
  WorkerWeights weights_;
  RunCheckpoints checkpoints_;
  Termination termination_;
  HealthWatch health_;
  FaultInjector faults_;
  ProcessEnds ends_;
  std::optional<SharedBatches> batches_;  // set if workers share the job's batches
  TimePoint next_round_{};
  bool awaits_round_ = false;  // there has been news since the last one
  TrafficWatch traffic_;
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
