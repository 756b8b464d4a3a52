#include "experiments/lab/report/results_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "common/os/whole_file.h"
#include "common/step_fields.h"
#include "experiments/checkpoint/safetensors.h"
#include "experiments/config/toml.h"
#include "experiments/lab/report/evals_csv.h"
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
  std::string header = "repeat,worker";
  for (const StepField& field : step_fields()) {
    if (field.column != nullptr) header.append(",").append(field.column);
  }
  return header + "\n";
}

std::string steps_csv_row(int repeat, int worker, TimePoint origin, const StepRecord& step, bool learns) {
  std::string row = fmt::format("{},{}", repeat, worker);
  for (const StepField& field : step_fields()) {
    if (field.column == nullptr) continue;
    row += ',';
    if (learns || !field.of_learning) append_cell(field, step, origin, row);
  }
  return row + "\n";
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
  steps_.add(steps_csv_row(repeat_, worker, origin_, step, learns_));
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
