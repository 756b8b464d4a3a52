#include "experiments/checkpoint/shard_cutter.h"

#include <utility>

namespace syncopate::experiments {

ShardCutter::ShardCutter(ShardCutterOptions options, const StateForms& forms, ReportCheckpoint report, Threads& threads)
    : options_(std::move(options)),
      forms_(forms),
      report_(std::move(report)),
      clock_(threads.clock()),
      writer_(threads) {}

void ShardCutter::begin(std::int64_t membership_epoch, std::int64_t first_step, SaveWhen save_when) {
  {
    const std::lock_guard lock(mutex_);
    membership_epoch_ = membership_epoch;
    save_when_ = std::move(save_when);
  }
  if (counts()) ask(membership_epoch, next_after(first_step), true);
}

void ShardCutter::end() {
  const std::lock_guard lock(mutex_);
  save_when_ = nullptr;
}

void ShardCutter::on_order(std::int64_t membership_epoch, std::int64_t step) {
  if (counts() && step % options_.interval.steps == 0) return;  // it is asked for already
  ask(membership_epoch, step, false);
}

std::int64_t ShardCutter::next_after(std::int64_t step) const {
  return (step / options_.interval.steps + 1) * options_.interval.steps;
}

void ShardCutter::ask(std::int64_t membership_epoch, std::int64_t step, bool then_next) {
  const std::lock_guard lock(mutex_);
  if (membership_epoch != membership_epoch_ || !save_when_) return;
  TrainingState memory;
  if (TrainingState* idle = writer_.begin()) memory = std::move(*idle);
  save_when_(options_.together ? step / options_.period : 0, std::move(memory),
             [this, membership_epoch, step, then_next](Result<TrainingState> state) {
               // What never has anything comes to no number of updates that it could be asked for next.
               const bool is_over = state.status().code() == Code::kCancelled || (state.ok() && state->is_empty());
               on_state({.membership_epoch = membership_epoch, .step = step}, std::move(state));
               if (then_next && !is_over) ask(membership_epoch, next_after(step), true);
             });
}

void ShardCutter::on_state(CheckpointReport report, Result<TrainingState> state) {
  if (state.status().code() == Code::kCancelled) return;  // the membership epoch is over
  if (!state.ok()) {
    report.kind = CheckpointReport::Kind::kPassed;
    return report_(report);
  }
  if (state->is_empty()) {
    report.kind = CheckpointReport::Kind::kNothing;
    return report_(report);
  }
  {
    const std::lock_guard lock(mutex_);
    report.taken = clock_.now();
    if (report.step == options_.last_step) writer_.finish_by(report.taken + options_.patience);
    if (TrainingState* idle = writer_.begin()) {
      *idle = std::move(*state);
      return writer_.submit(
          [this, report = std::move(report)](const TrainingState& taken, const std::stop_token& stop) {
            deliver_part({.folder = options_.folder, .writer = options_.writer, .digests = options_.digests}, forms_,
                         taken, stop, report, report_);
          });
    }
  }
  report.kind = CheckpointReport::Kind::kBusy;
  report_(report);
}

}  // namespace syncopate::experiments
