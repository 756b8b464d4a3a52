#include "experiments/lab/report/results_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "common/os/whole_file.h"
#include "experiments/checkpoint/safetensors.h"
#include "experiments/config/toml.h"
#include "experiments/lab/report/kept_results.h"
#include "experiments/lab/report/summary_json.h"

namespace syncopate::experiments {
namespace {

constexpr Duration kFlushEvery = std::chrono::seconds(1);
// Enough for the summary of a run: a disk with less counts as full.
constexpr std::size_t kReservedBytes = 4 * 1024 * 1024;

// A run of --resume=auto has taken its folder already.
Result<std::optional<ResultsFolder>> take_folder(const ResolvedRun& config) {
  const auto elsewhere = [](const Status& status) {
    if (status.code() != Code::kResourceExhausted) return status;
    return Status(status.code(), status.message() + "; --output=DIR names another place for results");
  };
  std::optional<ResultsFolder> taken;
  if (resumes_here(config)) {
    SYNCOPATE_RETURN_IF_ERROR(check_output(config));
  } else {
    Result<ResultsFolder> folder = ResultsFolder::take(config.output, [&] { return check_output(config); });
    if (!folder.ok()) return elsewhere(folder.status());
    taken.emplace(std::move(*folder));
  }
  if (const Status made = make_folder(config.output + "/logs"); !made.ok()) return elsewhere(made);
  return taken;
}

}  // namespace

std::string steps_csv_header() {
  return "repeat,worker,step,epoch,position,end_s,total_us,data_us,forward_us,backward_us,straggle_us,exposed_wait_us,"
         "optimizer_us,communication_us,codec_us,copy_us,launch_us,bytes_out,bytes_in,staleness_mean,staleness_max,"
         "dropped,core_wait_us,compute_core_wait_us,backward_codec_us,last_shard,last_shard_us,"
         "samples,accuracy,loss\n";
}

std::string evals_csv_header() {
  return "repeat,epoch,step,samples_seen,training_s,accuracy,loss,auc,hr10,ndcg10,validation_accuracy,validation_loss,"
         "train_loss,train_accuracy,r2,rmse,validation_r2\n";
}

namespace {

// What is no number has an empty cell.
std::string number_cell(double value) { return std::isnan(value) ? "" : fmt::format("{:.6g}", value); }

}  // namespace

std::string steps_csv_row(int repeat, int worker, TimePoint origin, const StepRecord& step, bool learns) {
  const auto us = [](Duration duration) { return microseconds(duration); };
  const SyncStats& sync = step.sync;
  const auto if_known = [&](double value) { return step.core_wait ? fmt::format("{:.1f}", value) : ""; };
  return fmt::format(
      "{},{},{},{},{},{:.6f},{:.1f},{:.1f},{:.1f},{:.1f},{:.1f},{:.1f},{:.1f},{:.1f},{:.1f},{:.1f},{:.1f},{},{},{:.3f},"
      "{},"
      "{:.4g},"
      "{},{},{:.1f},{},{:.1f},"
      "{},{}\n",
      repeat, worker, step.step, step.epoch, step.position, seconds(step.end - origin), us(step.total), us(step.data),
      us(step.forward), us(step.backward), us(step.straggle), us(sync.exposed_wait), us(sync.optimizer),
      us(sync.communication), us(sync.codec), us(sync.copy), us(step.launch), sync.bytes_out, sync.bytes_in,
      sync.staleness_mean, sync.staleness_max, sync.dropped, if_known(us(step.core_wait.value_or(Duration::zero()))),
      if_known(us(step.compute_core_wait)), us(sync.backward_codec),
      sync.last_shard < 0 ? "" : std::to_string(sync.last_shard), us(sync.last_shard_alone), step.samples,
      learns ? fmt::format("{},{:.6g}", number_cell(step.accuracy), step.loss) : ",");
}

std::string evals_csv_row(int repeat, const EvalRecord& eval) {
  const auto cell = [](const std::optional<double>& value) { return value ? number_cell(*value) : ""; };
  const std::optional<ValidationFigures>& held_out = eval.validation;
  return fmt::format("{},{:.6g},{},{},{:.6f},{},{:.6g},{},{},{},{},{},{},{},{},{},{}\n", repeat, eval.epoch, eval.step,
                     eval.samples_seen, eval.training_seconds, number_cell(eval.accuracy), eval.loss,
                     cell(eval.figures.auc), cell(eval.figures.hit_rate), cell(eval.figures.ndcg),
                     held_out ? cell(held_out->accuracy) : "", held_out ? cell(held_out->loss) : "",
                     cell(eval.train_loss), cell(eval.train_accuracy), cell(eval.figures.r2), cell(eval.figures.rmse),
                     held_out ? cell(held_out->r2) : "");
}

Status check_output(const ResolvedRun& config) {
  if (resumes_here(config) && std::ranges::all_of(names_in(config.output), stays_for_resume)) return {};
  return check_holds_nothing(config.output);
}

Result<ResultsWriter> ResultsWriter::create(const ResolvedRun& config, const Environment& environment) {
  const std::string& directory = config.output;
  SYNCOPATE_ASSIGN_OR_RETURN(std::optional<ResultsFolder> folder, take_folder(config));
  SYNCOPATE_ASSIGN_OR_RETURN(SpaceReserve reserve, SpaceReserve::take(directory, kReservedBytes));
  SYNCOPATE_RETURN_IF_ERROR(write_whole_file(directory + "/config.toml", to_toml(config)));
  SYNCOPATE_RETURN_IF_ERROR(write_whole_file(directory + "/environment.json", environment_json(environment, config)));
  SYNCOPATE_ASSIGN_OR_RETURN(AppendFile steps, AppendFile::create(directory + "/steps.csv"));
  SYNCOPATE_ASSIGN_OR_RETURN(AppendFile evals, AppendFile::create(directory + "/evals.csv"));
  steps.add(steps_csv_header());
  evals.add(evals_csv_header());
  ResultsWriter writer(std::move(folder), std::move(reserve), directory, !is_profile(config), std::move(steps),
                       std::move(evals));
  SYNCOPATE_RETURN_IF_ERROR(writer.flush());
  return writer;
}

std::string ResultsWriter::log_path(const std::string& process) const {
  std::string name = process;
  for (char& c : name) c = c == ' ' ? '-' : c;
  return fmt::format("{}/logs/{}.log", directory_, name);
}

void ResultsWriter::begin_repeat(TimePoint origin) {
  ++repeat_;
  origin_ = origin;
}

void ResultsWriter::add(int worker, const StepRecord& step) {
  steps_.add(steps_csv_row(repeat_, worker, origin_, step, learns_ && step.samples > 0));
}

void ResultsWriter::add(const EvalRecord& eval) { evals_.add(evals_csv_row(repeat_, eval)); }

Status ResultsWriter::flush_if_due(TimePoint now) {
  if (now - last_flush_ < kFlushEvery) return {};
  last_flush_ = now;
  return flush();
}

Status ResultsWriter::flush() {
  SYNCOPATE_RETURN_IF_ERROR(steps_.flush());
  return evals_.flush();
}

Status ResultsWriter::write_summary(std::span<const RunReport> reports, const RunFacts& facts) {
  const Status flushed = flush();
  const std::string path = directory_ + "/summary.json", text = summary_json(reports, facts);
  Status written = write_whole_file(path, text);
  if (!written.ok()) {
    reserve_.release();
    written = write_whole_file(path, text);
  }
  return flushed.ok() ? written : flushed;
}

Status ResultsWriter::write_model(const ParamLayout& layout, std::span<const float> weights,
                                  std::span<const WholeNumbers> whole_numbers,
                                  const std::map<std::string, std::string>& metadata) {
  return write_safetensors(model_path(), layout, weights, metadata, whole_numbers);
}

}  // namespace syncopate::experiments
