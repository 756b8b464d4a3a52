#include "experiments/report/progress.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/report/format.h"

namespace syncopate::experiments {
namespace {

constexpr Duration kRecent = std::chrono::seconds(2);
constexpr Duration kBetweenUpdates = std::chrono::milliseconds(100);
constexpr const char* kClearLine = "\r\x1b[K";

}  // namespace

std::string to_text(const Progress& progress) {
  std::string text =
      fmt::format("epoch {}/{}  step {}/{}  {} samples/s  {} ms/step  loss {:.4f}",
                  std::min(progress.epoch + 1, progress.epochs), progress.epochs, progress.step, progress.steps,
                  format_count(progress.samples_per_second), format_ms(progress.step_ms), progress.loss);
  if (progress.accuracy) text += "  " + to_text(*progress.accuracy, progress.figures);
  if (progress.step < progress.steps) text += "  ETA " + format_duration(progress.seconds_left);
  return text;
}

ProgressTracker::ProgressTracker(int workers, std::int64_t steps_per_epoch, std::int64_t total_steps)
    : steps_per_epoch_(std::max<std::int64_t>(1, steps_per_epoch)),
      total_steps_(total_steps),
      finished_(static_cast<std::size_t>(workers)),
      lost_(static_cast<std::size_t>(workers)) {}

void ProgressTracker::add(int worker, const StepRecord& step) {
  finished_[static_cast<std::size_t>(worker)] = step.step + 1;
  newest_ = std::max(newest_, step.end);
  recent_.push_back({step.end, step.total, step.samples, step.loss});
  while (recent_.front().end < newest_ - kRecent) recent_.pop_front();
}

void ProgressTracker::worker_joined(int worker) {
  finished_[static_cast<std::size_t>(worker)] = steps_finished();
  lost_[static_cast<std::size_t>(worker)] = false;
}

std::int64_t ProgressTracker::steps_finished() const {
  std::int64_t least = total_steps_;
  for (std::size_t worker = 0; worker < finished_.size(); ++worker) {
    if (!lost_[worker]) least = std::min(least, finished_[worker]);
  }
  return least;
}

Progress ProgressTracker::progress() const {
  Progress progress;
  progress.step = steps_finished();
  progress.steps = total_steps_;
  // A line that ends an epoch belongs to that epoch, not to the next.
  progress.epoch = progress.step == 0 ? 0 : (progress.step - 1) / steps_per_epoch_;
  progress.epochs = (total_steps_ + steps_per_epoch_ - 1) / steps_per_epoch_;
  progress.accuracy = accuracy_;
  progress.figures = figures_;
  if (recent_.empty()) return progress;
  TimePoint begin = TimePoint::max();
  Duration total{};
  std::int64_t samples = 0;
  double loss = 0;
  for (const Sample& sample : recent_) {
    begin = std::min(begin, sample.end - sample.total);
    total += sample.total;
    samples += sample.samples;
    loss += sample.loss;
  }
  const auto count = static_cast<double>(recent_.size());
  progress.samples_per_second = newest_ > begin ? static_cast<double>(samples) / seconds(newest_ - begin) : 0;
  progress.step_ms = seconds(total) * 1e3 / count;
  progress.loss = loss / count;
  progress.seconds_left = static_cast<double>(progress.steps - progress.step) * progress.step_ms / 1e3;
  return progress;
}

std::string ProgressPrinter::update(const Progress& progress, TimePoint now) {
  if (columns_ == 0 || (last_ && now - *last_ < kBetweenUpdates)) return {};
  last_ = now;
  standing_ = true;
  return kClearLine + to_text(progress).substr(0, static_cast<std::size_t>(columns_ - 1));
}

std::string ProgressPrinter::epoch_finished(const Progress& progress) {
  standing_ = false;
  return (columns_ == 0 ? "" : kClearLine) + to_text(progress) + "\n";
}

std::string ProgressPrinter::interrupt() {
  if (!standing_) return {};
  standing_ = false;
  return "\n";
}

}  // namespace syncopate::experiments
