#include "tests/schedules/broken_promises.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include "common/clock.h"
#include "tests/schedules/fault_outlook.h"

namespace syncopate::experiments {
namespace {

// What each fault may cost beyond what it lasts itself: a silence, a wait, the time for an explanation, and those again
// where the first recovery meets the next loss.
constexpr double kTimeoutsOfARun = 6;
constexpr double kTimeoutsOfAFault = 4;
constexpr double kSecondsOfAFault = 4;

class PromiseCheck {
 public:
  PromiseCheck(const DrawnSchedule& schedule, const ScheduleRun& run)
      : schedule_(schedule), config_(schedule.run), outlook_(schedule), run_(run) {}

  std::vector<std::string> broken() {
    check_end();
    check_length();
    if (!run_.status.ok() || run_.outcome.verdict) return broken_;
    if (outlook_.is_outlasted()) check_losses();
    check_weights();
    check_order_of_steps();
    if (shares_work(config_)) check_batches();
    return broken_;
  }

 private:
  template <typename... T>
  void complain(fmt::format_string<T...> format, T&&... arguments) {
    broken_.push_back(fmt::format(format, std::forward<T>(arguments)...));
  }

  void check_end() {
    if (!run_.status.ok()) return complain("no verdict, but: {}", run_.status.message());
    if (!run_.outcome.verdict) return;
    const Verdict& verdict = *run_.outcome.verdict;
    if (verdict.code != ExitCode::kProcessLost && verdict.code != ExitCode::kTimeout) {
      complain("exit code {}: {}", static_cast<int>(verdict.code), verdict.line);
    }
    if (outlook_.is_outlasted() && !comes_too_late(verdict))
      complain("it outlasts what happened, and ended with: {}", verdict.line);
    if (verdict.line.empty() || verdict.line.find('\n') != std::string::npos) {
      complain("the verdict is no line: '{}'", verdict.line);
    }
  }

  // Nobody else is lost than who was killed.
  void check_losses() {
    for (const auto& [rank, events] : run_.workers) {
      const auto lost = std::ranges::count(events, WorkerEvent::Kind::kLost, &WorkerEvent::kind);
      const auto killed = std::ranges::count_if(outlook_.faults(), [rank = rank](const Fault& fault) {
        return fault.kind == FaultKind::kKill && fault.target == FaultTarget{FaultRole::kWorker, rank};
      });
      if (lost > killed) complain("worker {} was killed {} times, and lost {} times", rank, killed, lost);
    }
  }

  // Servers end one after the other, and where one has, the others' state can go nowhere.
  static bool comes_too_late(const Verdict& verdict) {
    return verdict.line.find("cannot take part in another membership") != std::string::npos;
  }

  void check_length() {
    const std::string faults = config_.faults.to_string();
    const auto count = faults.empty() ? 0.0 : 1.0 + static_cast<double>(std::ranges::count(faults, ','));
    const double a_step = 5 * seconds(*config_.compute.step) + 0.1 + 0.05 * config_.workers;
    const double most = static_cast<double>(schedule_.total_steps) * a_step * 2 +
                        (kTimeoutsOfARun + kTimeoutsOfAFault * count) * config_.timeout_seconds +
                        kSecondsOfAFault * count;
    if (seconds(run_.length) > most) {
      complain("it lasted {:.3f} s of virtual time, more than the {:.3f} s that its deadlines allow",
               seconds(run_.length), most);
    }
  }

  void check_weights() {
    if (run_.final_weights != 1) complain("final weights were handed in {} times", run_.final_weights);
    if (!run_.weights.empty() && run_.weights.size() != schedule_.layout.size()) {
      complain("{} final weights of {}", run_.weights.size(), schedule_.layout.size());
    }
    if (!std::ranges::all_of(run_.weights, [](float weight) { return std::isfinite(weight); })) {
      complain("final weights are not finite");
    }
  }

  void check_order_of_steps() {
    for (const auto& [rank, events] : run_.workers) {
      for (const WorkerEvent& event : events) {
        if (event.kind == WorkerEvent::Kind::kStep) check_step(rank, event.step);
      }
      check_steps_while_there(rank, events);
    }
  }

  void check_step(int rank, const StepRecord& step) {
    if (step.samples != config_.batch_size) {
      complain("step {} of worker {} learnt from {} samples", step.step, rank, step.samples);
    }
    if (!std::isfinite(step.loss)) complain("step {} of worker {} has no finite loss", step.step, rank);
  }

  // A worker that has been there all along makes each step once. A change of who takes part may come upon a step whose
  // gradients count already, and which then has no record; or, where a step's record does not wait for its answers,
  // upon one that does not count yet, and is made again.
  void check_steps_while_there(int rank, const std::vector<WorkerEvent>& events) {
    const std::int64_t changes = changes_of(run_);
    const std::int64_t under_way =
        changes == 0 ? 0 : std::max<std::int64_t>(config_.pipeline_depth, config_.overlap_forward ? 1 : 0);
    std::int64_t next = 0, left_out = 0;
    for (const WorkerEvent& event : events) {
      if (event.kind != WorkerEvent::Kind::kStep) return;  // what it makes from there on depends on the others
      const std::int64_t step = event.step.step;
      if (step < next - under_way) complain("worker {} made step {} again, after step {}", rank, step, next - 1);
      left_out += std::max<std::int64_t>(0, step - next);
      next = step + 1;
    }
    const bool has_quota = !shares_work(config_) && batches_a_step(config_) == config_.workers;
    if (has_quota) left_out += schedule_.total_steps - next;
    if (left_out > changes) complain("worker {} left out {} steps at {} changes", rank, left_out, changes);
    if (has_quota && next > schedule_.total_steps) complain("worker {} made a step {}", rank, next - 1);
  }

  // Each batch of the job is trained, and by one worker, whoever that is; what was under way to and from those that are
  // lost may be trained twice.
  void check_batches() {
    const bool together = stayed_together(run_);
    std::map<std::int64_t, int> trained;
    for (const auto& [rank, events] : run_.workers) {
      for (const WorkerEvent& event : events) {
        if (event.kind == WorkerEvent::Kind::kStep) ++trained[event.step.position];
      }
    }
    const bool says_that_some_were_not = std::ranges::any_of(run_.outcome.reports, [](const std::string& report) {
      return report.find("were not trained") != std::string::npos;
    });
    const std::int64_t batches = schedule_.total_steps * config_.workers;
    if (says_that_some_were_not && trained_after_losses() > batches / 2) {
      complain("batches were not trained, and there was time to: {}", fmt::join(run_.outcome.reports, "; "));
    }
    for (std::int64_t batch = 0; batch < batches; ++batch) {
      if (trained[batch] == 0 && !says_that_some_were_not) complain("batch {} was not trained", batch);
      if (trained[batch] > 1 && together) complain("batch {} was trained {} times", batch, trained[batch]);
    }
    if (static_cast<std::int64_t>(trained.size()) > batches) complain("more batches were trained than there are");
  }

  // Returns how many batches were trained after the last loss of a worker.
  std::int64_t trained_after_losses() const {
    TimePoint last{};
    for (const auto& [rank, events] : run_.workers) {
      for (const WorkerEvent& event : events) {
        if (event.kind == WorkerEvent::Kind::kLost) last = std::max(last, event.at);
      }
    }
    std::int64_t trained = 0;
    for (const auto& [rank, events] : run_.workers) {
      trained += std::ranges::count_if(events, [last](const WorkerEvent& event) {
        return event.kind == WorkerEvent::Kind::kStep && event.step.end > last;
      });
    }
    return trained;
  }

  const DrawnSchedule& schedule_;
  const ResolvedRun& config_;
  const FaultOutlook outlook_;
  const ScheduleRun& run_;
  std::vector<std::string> broken_;
};

}  // namespace

std::vector<std::string> broken_promises(const DrawnSchedule& schedule, const ScheduleRun& run) {
  return PromiseCheck(schedule, run).broken();
}

std::int64_t changes_of(const ScheduleRun& run) {
  std::int64_t changes = 0;
  for (const auto& [rank, events] : run.workers) {
    changes +=
        std::ranges::count_if(events, [](const WorkerEvent& event) { return event.kind != WorkerEvent::Kind::kStep; });
  }
  return changes + std::ranges::count_if(run.outcome.reports, [](const std::string& report) {
           constexpr std::string_view kOfServers[] = {"all connect anew", "takes its place", "goes on without it",
                                                      "is back"};
           return !report.starts_with("evaluator") && std::ranges::any_of(kOfServers, [&](std::string_view change) {
             return report.find(change) != std::string::npos;
           });
         });
}

bool stayed_together(const ScheduleRun& run) { return run.status.ok() && !run.outcome.verdict && changes_of(run) == 0; }

bool is_independent_of_time(const ResolvedRun& run) {
  if (run.mode == Mode::kPs) return run.consistency.updates_together() && run.backup_workers == 0;
  if (gossips_asynchronously(run)) return false;
  return run.mode == Mode::kLocal || run.bucket_bytes.has_value() || averages_weights(run);
}

}  // namespace syncopate::experiments
