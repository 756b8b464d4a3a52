#include "tests/schedules/schedule_run.h"

#include <fmt/format.h>

#include <bit>
#include <exception>
#include <filesystem>
#include <utility>

#include "common/hash.h"
#include "experiments/cluster/coordinator/interrupts.h"
#include "experiments/cluster/plan/job_plan.h"
#include "experiments/cluster/simulated/simulated_cluster.h"

namespace syncopate::experiments {
namespace {

class ScheduleObserver final : public RunObserver {
 public:
  explicit ScheduleObserver(ScheduleRun& run) : run_(run) {}

  void on_training_begins(TimePoint) override {}
  void on_steps(int worker, std::span<const StepRecord> steps) override {
    for (const StepRecord& step : steps) add(worker, WorkerEvent::Kind::kStep, step);
  }
  void on_evaluation(const EvaluationResult&) override { ++run_.evaluations; }
  void on_final_weights(std::span<const float> weights, std::span<const float>, const TableKeys&) override {
    run_.weights.assign(weights.begin(), weights.end());
    ++run_.final_weights;
  }
  void on_worker_lost(int rank) override { add(rank, WorkerEvent::Kind::kLost); }
  void on_worker_joined(int rank) override { add(rank, WorkerEvent::Kind::kJoined); }
  void on_fact(const std::string&, const std::string&) override {}
  void on_report(const std::string&) override {}
  Status on_tick(TimePoint now) override {
    if (begin_ == TimePoint()) begin_ = now;
    run_.length = now - begin_;
    return {};
  }

 private:
  void add(int worker, WorkerEvent::Kind kind, const StepRecord& step = {}) {
    run_.workers[worker].push_back({.kind = kind, .step = step, .at = begin_ + run_.length});
  }

  ScheduleRun& run_;
  TimePoint begin_{};
};

Result<RunOutcome> simulate_schedule(const DrawnSchedule& schedule, const std::string& directory, ScheduleRun& run) {
  const JobPlan plan = make_plan(schedule.run, "schedule", "simulated");
  const CoordinatorOptions options{.total_steps = schedule.total_steps, .local_state_size = schedule.local_state_size};
  const SimulatedCompute compute{.times = divided(*schedule.run.compute.step, schedule.layout)};
  ScheduleObserver observer(run);
  Interrupts interrupts;
  return simulate(schedule.run, plan, options, compute, directory, observer, interrupts);
}

void add_trace(std::string& text, int rank, const WorkerEvent& event) {
  if (event.kind != WorkerEvent::Kind::kStep) {
    text += fmt::format("worker {} {}\n", rank, event.kind == WorkerEvent::Kind::kLost ? "lost" : "back");
    return;
  }
  const StepRecord& step = event.step;
  text += fmt::format("worker {} step {} of {} batch {} at {} after {} {} {} {} {}, {} {} bytes, loss {:x}\n", rank,
                      step.step, step.epoch, step.position, step.end.time_since_epoch().count(), step.total.count(),
                      step.data.count(), step.forward.count(), step.backward.count(), step.straggle.count(),
                      step.sync.bytes_out, step.sync.bytes_in, std::bit_cast<std::uint64_t>(step.loss));
}

}  // namespace

ScheduleRun carry_out(const DrawnSchedule& schedule, const std::string& directory) {
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  ScheduleRun run;
  try {
    Result<RunOutcome> outcome = simulate_schedule(schedule, directory, run);
    run.status = outcome.status();
    if (outcome.ok()) run.outcome = std::move(*outcome);
  } catch (const std::exception& thrown) {
    run.status = Status::internal(fmt::format("thrown: {}", thrown.what()));
  }
  return run;
}

std::string trace_of(const ScheduleRun& run) {
  std::string text = fmt::format("{}, {}, {} evaluations\n", run.status.message(), run.length.count(), run.evaluations);
  for (const auto& [rank, events] : run.workers) {
    for (const WorkerEvent& event : events) add_trace(text, rank, event);
  }
  for (const std::string& report : run.outcome.reports) text += report + "\n";
  if (run.outcome.verdict) text += run.outcome.verdict->line + "\n";
  Fnv weights;
  for (const float weight : run.weights) weights.add(std::uint64_t{std::bit_cast<std::uint32_t>(weight)});
  return text + fmt::format("weights {:x}\n", weights.value());
}

}  // namespace syncopate::experiments
