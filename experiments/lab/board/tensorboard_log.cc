#include "experiments/lab/board/tensorboard_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/os/whole_file.h"

namespace syncopate::experiments {
namespace {

constexpr Duration kBetweenFlushes = std::chrono::seconds(1);
constexpr int kPointsAHistogram = 20;

using Values = std::vector<board::Summary::Value>;

board::Event event_of(double wall_time, std::int64_t step, Values values) {
  board::Event event;
  event.set_wall_time(wall_time);
  event.set_step(step);
  for (board::Summary::Value& value : values) *event.mutable_summary()->add_value() = std::move(value);
  return event;
}

Result<AppendFile> open_part(const TensorBoardLog::Job& job, double now, const std::string& part) {
  const std::string folder = job.folder + "/" + part;
  SYNCOPATE_RETURN_IF_ERROR(make_folder(folder));
  const std::string path = fmt::format("{}/events.out.tfevents.{}.{}", folder, std::llround(now), job.host);
  SYNCOPATE_ASSIGN_OR_RETURN(AppendFile file, AppendFile::create(path));
  file.add(event_record(version_event(now)));
  return file;
}

}  // namespace

Result<TensorBoardLog> TensorBoardLog::create(const Job& job) {
  TensorBoardLog log(job);
  const double now = job.wall_clock();
  SYNCOPATE_ASSIGN_OR_RETURN(log.train_, open_part(job, now, "train"));
  if (job.learns) {
    SYNCOPATE_ASSIGN_OR_RETURN(log.test_, open_part(job, now, "test"));
  }
  if (job.holds_out) {
    SYNCOPATE_ASSIGN_OR_RETURN(log.validation_, open_part(job, now, "validation"));
  }
  log.train_->add(event_record(event_of(now, job.first_step, {text_value("run", job.text)})));
  SYNCOPATE_RETURN_IF_ERROR(log.flush());
  return log;
}

void TensorBoardLog::begin(TimePoint origin) {
  origin_ = origin;
  wall_begin_ = job_.wall_clock();
  curves_.begin(origin);
}

void TensorBoardLog::add(int /*worker*/, const StepRecord& step) { waiting_.push_back(step); }

void TensorBoardLog::add(const EvalRecord& eval) {
  const auto draw = [&](std::optional<AppendFile>& file, std::optional<double> loss, std::optional<double> accuracy) {
    Values values;
    if (loss) values.push_back(scalar_value("epoch_loss", *loss));
    if (accuracy && !std::isnan(*accuracy)) values.push_back(scalar_value("epoch_accuracy", *accuracy));
    if (&file == &test_ && eval.figures.auc) values.push_back(scalar_value("epoch_auc", *eval.figures.auc));
    if (&file == &test_ && eval.figures.hit_rate) values.push_back(scalar_value("epoch_hr10", *eval.figures.hit_rate));
    if (&file == &test_ && eval.figures.ndcg) values.push_back(scalar_value("epoch_ndcg10", *eval.figures.ndcg));
    if (&file == &test_ && eval.figures.r2) values.push_back(scalar_value("epoch_r2", *eval.figures.r2));
    if (&file == &test_ && eval.figures.rmse) values.push_back(scalar_value("epoch_rmse", *eval.figures.rmse));
    if (&file == &validation_ && eval.validation->r2) values.push_back(scalar_value("epoch_r2", *eval.validation->r2));
    if (!file || values.empty()) return;
    file->add(event_record(event_of(wall_begin_ + eval.training_seconds, eval.step, std::move(values))));
  };
  draw(train_, eval.train_loss, eval.train_accuracy);
  draw(test_, eval.loss, eval.accuracy);
  if (eval.validation) draw(validation_, eval.validation->loss, eval.validation->accuracy);
}

void TensorBoardLog::not_finite(std::int64_t step, const std::string& line) {
  train_->add(event_record(event_of(job_.wall_clock(), step, {text_value("not_finite", line)})));
}

Status TensorBoardLog::tick(TimePoint now, TimePoint all_before) {
  draw_steps(all_before);
  if (now - last_flush_ < kBetweenFlushes) return {};
  last_flush_ = now;
  return flush();
}

Status TensorBoardLog::end() {
  draw_steps(TimePoint::max());
  if (const std::optional<CurvePoint> rest = curves_.rest()) draw(*rest);
  if (!step_ms_.empty()) draw_histograms();
  return flush();
}

void TensorBoardLog::draw_steps(TimePoint before) {
  const auto open = std::stable_partition(waiting_.begin(), waiting_.end(),
                                          [&](const StepRecord& step) { return step.end < before; });
  std::vector<StepRecord> due(waiting_.begin(), open);
  waiting_.erase(waiting_.begin(), open);
  std::ranges::stable_sort(due, {}, &StepRecord::end);
  for (const StepRecord& step : due) {
    step_ms_.push_back(1e3 * seconds(step.total));
    staleness_.push_back(step.sync.staleness_mean);
    const std::optional<CurvePoint> point = curves_.add(step);
    if (!point) continue;
    draw(*point);
    if (++points_since_histograms_ == kPointsAHistogram) draw_histograms();
  }
}

void TensorBoardLog::draw(const CurvePoint& point) {
  last_point_ = point;
  Values values;
  if (job_.learns) {
    values.push_back(scalar_value("batch_loss", point.loss));
    if (!std::isnan(point.accuracy)) values.push_back(scalar_value("batch_accuracy", point.accuracy));
  }
  values.push_back(scalar_value("throughput/samples_per_second", point.samples_per_second));
  values.push_back(scalar_value("step/milliseconds", point.step_ms));
  values.push_back(scalar_value("step/wait_milliseconds", point.wait_ms));
  if (job_.has_staleness) values.push_back(scalar_value("staleness/mean", point.staleness));
  train_->add(event_record(event_of(wall_time(point.at), point.step, std::move(values))));
}

void TensorBoardLog::draw_histograms() {
  Values values{histogram_value("step/milliseconds_of_each", step_ms_)};
  if (job_.has_staleness) values.push_back(histogram_value("staleness/of_each_step", staleness_));
  train_->add(event_record(event_of(wall_time(last_point_.at), last_point_.step, std::move(values))));
  step_ms_.clear();
  staleness_.clear();
  points_since_histograms_ = 0;
}

Status TensorBoardLog::flush() {
  for (std::optional<AppendFile>* file : {&train_, &test_, &validation_}) {
    if (*file) SYNCOPATE_RETURN_IF_ERROR((*file)->flush());
  }
  return {};
}

}  // namespace syncopate::experiments
