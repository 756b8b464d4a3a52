#include "experiments/lab/report/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "common/text/format.h"
#include "experiments/cluster/control/figure_text.h"

namespace syncopate::experiments {
namespace {

constexpr Duration kRecent = std::chrono::seconds(2);
constexpr Duration kBetweenUpdates = std::chrono::milliseconds(100);
constexpr Duration kBetweenLines = std::chrono::seconds(10);
constexpr const char* kClearLine = "\r\x1b[K";

constexpr std::size_t kMostColumns = 80;  // where there is no terminal whose width is known

struct Field {
  std::string text;
  int importance = 0;  // the least important is left out first
  std::string brief;   // the text in fewer words; empty: it has none
};

// What a line that must be shorter has given up: fields whose importance is less, and the words of those whose
// importance is less than `least_whole`.
struct Shortened {
  int least = 0, least_whole = 0;
};

std::string joined(const std::vector<Field>& fields, const Shortened& shortened) {
  std::string text;
  for (const Field& field : fields) {
    if (field.text.empty() || field.importance < shortened.least) continue;
    const bool is_brief = field.importance < shortened.least_whole && !field.brief.empty();
    text += (text.empty() ? "" : "  ") + (is_brief ? field.brief : field.text);
  }
  return text;
}

std::string training_text(const Progress& progress) {
  if (!progress.loss) return {};
  if (!progress.holds_out) return "loss " + figure_text(*progress.loss);
  if (std::isnan(progress.train_accuracy)) return "train loss " + figure_text(*progress.loss);
  return fmt::format("train loss {}, accuracy {}", figure_text(*progress.loss), figure_text(progress.train_accuracy));
}

}  // namespace

std::string to_text(const Progress& progress, std::size_t columns) {
  std::vector<Field> fields{
      {progress.epochs > 0 ? fmt::format("epoch {}/{}", std::min(progress.epoch + 1, progress.epochs), progress.epochs)
                           : std::string(),
       2,
       {}},
      {progress.steps > 0 ? fmt::format("step {}/{}", progress.step, progress.steps)
                          : fmt::format("step {}", progress.step),
       3,
       {}},
      {training_text(progress), 4, {}},
      {"", 1, {}},
      {fmt::format("mean {} samples/s, {} ms/step", format_count(progress.samples_per_second),
                   format_ms(progress.step_ms)),
       0, format_count(progress.samples_per_second) + " samples/s"},
      {progress.step < progress.steps
           ? fmt::format("ETA {}{}", format_duration(progress.seconds_left), progress.is_virtual ? " virtual" : "")
           : std::string(),
       4,
       {}}};
  if (progress.accuracy) {
    fields[3].text =
        progress.validation ? to_text(*progress.validation) : to_text(*progress.accuracy, progress.figures);
    fields[3].brief = fields[3].text;
    if (progress.epochs > 0) fields[3].text += fmt::format(" at epoch {:.3g}", progress.evaluated_epoch);
  }
  constexpr Shortened kSteps[] = {{0, 0}, {0, 1}, {0, 2}, {1, 1}, {1, 2}, {2, 2}, {3, 2}, {4, 2}};
  const auto* step = std::begin(kSteps);
  while (joined(fields, *step).size() > columns && step + 1 != std::end(kSteps)) ++step;
  return joined(fields, *step);
}

std::string side_by_side(const std::vector<std::string>& parts) {
  std::string text, line;
  for (const std::string& part : parts) {
    if (!line.empty() && line.size() + 2 + part.size() > kMostColumns) {
      text += line + "\n";
      line.clear();
    }
    line += line.empty() && text.empty() ? part : "  " + part;
  }
  return text + line;
}

ProgressTracker::ProgressTracker(const Job& job)
    : job_(job),
      batches_(job.first_step * job.workers),
      finished_(static_cast<std::size_t>(job.workers), job.first_step),
      lost_(static_cast<std::size_t>(job.workers)) {
  job_.steps_per_epoch = std::max<std::int64_t>(1, job.steps_per_epoch);
  if (job.total_steps == 0) job_.steps_per_epoch = std::numeric_limits<std::int64_t>::max();
}

void ProgressTracker::add(int worker, const StepRecord& step) {
  finished_[static_cast<std::size_t>(worker)] = step.step + 1;
  batches_ = std::max(batches_, step.position + job_.batches_an_update);
  first_ = std::min(first_, step.end - step.total);
  newest_ = std::max(newest_, step.end);
  recent_.push_back({step.end, step.total, step.samples, step.loss, step.accuracy});
  while (recent_.front().end < newest_ - kRecent) recent_.pop_front();
}

void ProgressTracker::worker_joined(int worker) {
  finished_[static_cast<std::size_t>(worker)] = steps_finished();
  lost_[static_cast<std::size_t>(worker)] = false;
}

std::int64_t ProgressTracker::steps_finished() const {
  if (job_.by_position) return std::min(job_.total_steps, batches_ / job_.workers);
  std::int64_t least = job_.total_steps > 0 ? job_.total_steps : std::numeric_limits<std::int64_t>::max();
  for (std::size_t worker = 0; worker < finished_.size(); ++worker) {
    if (!lost_[worker]) least = std::min(least, finished_[worker]);
  }
  return least;
}

Progress ProgressTracker::progress() const {
  Progress progress{.is_virtual = job_.is_virtual, .holds_out = job_.holds_out};
  progress.step = steps_finished();
  progress.steps = job_.total_steps;
  // A line at the end of an epoch belongs to that epoch, not to the next.
  progress.epoch = progress.step == 0 ? 0 : (progress.step - 1) / job_.steps_per_epoch;
  progress.epochs = job_.total_steps > 0 ? (job_.total_steps + job_.steps_per_epoch - 1) / job_.steps_per_epoch : 0;
  if (newest_eval_) {
    progress.accuracy = newest_eval_->accuracy;
    progress.figures = newest_eval_->figures;
    progress.validation = newest_eval_->validation;
    progress.evaluated_epoch = newest_eval_->epoch;
  }
  if (recent_.empty()) return progress;
  TimePoint begin = TimePoint::max();
  Duration total{};
  std::int64_t samples = 0;
  double loss = 0, accuracy = 0;
  for (const Sample& sample : recent_) {
    begin = std::min(begin, sample.end - sample.total);
    total += sample.total;
    samples += sample.samples;
    loss += sample.loss * static_cast<double>(sample.samples);
    accuracy += sample.accuracy * static_cast<double>(sample.samples);
  }
  progress.samples_per_second = newest_ > begin ? static_cast<double>(samples) / seconds(newest_ - begin) : 0;
  progress.step_ms = seconds(total) * 1e3 / static_cast<double>(recent_.size());
  if (samples > 0) {
    if (job_.learns) progress.loss = loss / static_cast<double>(samples);
    progress.train_accuracy = accuracy / static_cast<double>(samples);
  }
  progress.seconds_left = seconds_left();
  return progress;
}

// Uses the mean rate, since the current one would make the estimate jump at each pause and disturbance.
double ProgressTracker::seconds_left() const {
  const std::int64_t finished = steps_finished();
  if (finished <= job_.first_step) return 0;
  const double a_step = seconds(newest_ - first_) / static_cast<double>(finished - job_.first_step);
  return static_cast<double>(job_.total_steps - finished) * a_step;
}

std::string ProgressPrinter::update(const Progress& progress, TimePoint now) {
  if (!last_) last_ = columns_ == 0 ? now : now - kBetweenUpdates;
  if (now - *last_ < (columns_ == 0 ? kBetweenLines : kBetweenUpdates)) return {};
  last_ = now;
  if (columns_ == 0) return to_text(progress, kMostColumns) + "\n";
  standing_ = true;
  return kClearLine +
         to_text(progress, static_cast<std::size_t>(columns_ - 1)).substr(0, static_cast<std::size_t>(columns_ - 1));
}

std::string ProgressPrinter::epoch_finished(const Progress& progress, TimePoint now) {
  standing_ = false;
  last_ = now;
  const std::size_t columns = columns_ == 0 ? kMostColumns : static_cast<std::size_t>(columns_);
  return (columns_ == 0 ? "" : kClearLine) + to_text(progress, columns) + "\n";
}

std::string ProgressPrinter::interrupt() {
  if (!standing_) return {};
  standing_ = false;
  return "\n";
}

}  // namespace syncopate::experiments
