#include "experiments/checkpoint/checkpoint_cutter.h"

#include <utility>

namespace syncopate::experiments {

CheckpointCutter::CheckpointCutter(CutterOptions options, const StateForms& forms, Threads& threads,
                                   ReportCheckpoint report)
    : options_(std::move(options)),
      forms_(forms),
      clock_(threads.clock()),
      report_(std::move(report)),
      writer_(threads) {}

void CheckpointCutter::begin(std::int64_t membership_epoch, std::int64_t first_step, std::optional<Share> share) {
  const std::lock_guard lock(mutex_);
  membership_epoch_ = membership_epoch;
  steps_done_ = first_step;
  share_ = share;
  ordered_.reset();
}

void CheckpointCutter::on_order(std::int64_t membership_epoch, std::int64_t step) {
  CheckpointReport passed{.kind = CheckpointReport::Kind::kPassed, .membership_epoch = membership_epoch, .step = step};
  {
    const std::lock_guard lock(mutex_);
    if (membership_epoch != membership_epoch_ || !share_) return;
    if (!options_.together || step > steps_done_) {
      ordered_ = step;
      return;
    }
  }
  report_(passed);
}

std::optional<std::int64_t> CheckpointCutter::due(std::int64_t steps_done) {
  const std::lock_guard lock(mutex_);
  steps_done_ = steps_done;
  if (!share_) return std::nullopt;
  if (ordered_ && (!options_.together || *ordered_ == steps_done)) return std::exchange(ordered_, std::nullopt);
  const bool counts = options_.interval.steps > 0 && options_.together;
  return counts && steps_done % options_.interval.steps == 0 ? std::optional(steps_done) : std::nullopt;
}

void CheckpointCutter::step_done(std::int64_t steps_done, const std::function<Status(TrainingState&)>& take) {
  const std::optional<std::int64_t> step = due(steps_done);
  if (step) cut({.membership_epoch = membership_epoch_, .step = *step}, steps_done, take);
}

void CheckpointCutter::cut(CheckpointReport report, std::int64_t steps_done,
                           const std::function<Status(TrainingState&)>& take) {
  const TimePoint begin = report.taken = clock_.now();
  if (steps_done == options_.last_step) writer_.finish_by(begin + options_.patience);
  TrainingState* const state = writer_.begin();
  if (state == nullptr) {
    report.kind = CheckpointReport::Kind::kBusy;
    return report_(report);
  }
  state->step = steps_done;
  if (const Status taken = take(*state); !taken.ok()) return tell_failure(std::move(report), taken, report_);
  report.stall = clock_.now() - begin;
  writer_.submit(
      [this, report = std::move(report), share = *share_](const TrainingState& taken, const std::stop_token& stop) {
        deliver_part({.folder = options_.folder,
                      .writer = options_.writer,
                      .share = share,
                      .worker = options_.worker,
                      .digests = options_.digests},
                     forms_, taken, stop, report, report_);
      });
}

}  // namespace syncopate::experiments
