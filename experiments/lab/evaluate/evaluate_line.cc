#include "experiments/lab/evaluate/evaluate_line.h"

#include <fmt/format.h>

#include <memory>
#include <string_view>
#include <utility>

#include "common/finite.h"
#include "common/os/whole_file.h"
#include "common/text/format.h"
#include "experiments/cluster/process/data_of.h"
#include "experiments/config/commands.h"
#include "experiments/config/resolution.h"
#include "experiments/lab/evaluate/model_options.h"
#include "experiments/lab/evaluate/predictions_file.h"
#include "experiments/lab/evaluate/saved_model.h"

namespace syncopate::experiments {
namespace {

constexpr const char* kPredictions = "predictions";

// Returns the model and its data, as given, else as known of the weights.
Result<RunRequest> request_of(const SavedModel& saved, const GivenOptions& given) {
  const GivenOptions all = merge(given, saved.options);
  for (const char* needed : {"model", "dataset"}) {
    if (all.contains(needed)) continue;
    return Status::invalid_argument(fmt::format(
        "{}: says neither in its metadata nor in a config.toml beside it what --{} it is of; give --{}=NAME",
        saved.path, needed, needed));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(RunRequest request, apply_options(all));
  SYNCOPATE_RETURN_IF_ERROR(check_effect(given, {presumed(request)}));
  if (!is_profile(request)) return request;
  return Status::invalid_argument(fmt::format("--model={}: a profile learns nothing; name a model", request.model));
}

Status check_predictable(const RunRequest& request) {
  if (learns_images(request)) return {};
  return Status::invalid_argument(
      fmt::format("--predictions: has a row an image, and --dataset={} has none", request.dataset));
}

}  // namespace

Result<EvaluatedModel> evaluate(const EvaluateRequest& request) {
  SYNCOPATE_ASSIGN_OR_RETURN(const SavedModel saved, open_saved_model(request.path));
  SYNCOPATE_ASSIGN_OR_RETURN(const RunRequest config, request_of(saved, request.options));
  if (request.predictions) SYNCOPATE_RETURN_IF_ERROR(check_predictable(config));
  // What does not fit is said before any data is generated.
  SYNCOPATE_ASSIGN_OR_RETURN(const worker::SampleForm form, form_of_data(config));
  SYNCOPATE_ASSIGN_OR_RETURN(const ParamLayout layout, worker::model_layout(model_spec(config), form));
  SYNCOPATE_ASSIGN_OR_RETURN(const ParamLayout local_layout, local_state_layout_of(config));
  SYNCOPATE_ASSIGN_OR_RETURN(const WeightsSnapshot snapshot, read_weights(saved, layout, local_layout));
  SYNCOPATE_ASSIGN_OR_RETURN(const worker::DatasetPair data, open_data_of(config));
  const std::unique_ptr<worker::ComputeBackend> backend = backend_of(config);
  SYNCOPATE_ASSIGN_OR_RETURN(Evaluation evaluation, Evaluation::create(model_spec(config), *data.test, *backend,
                                                                       evaluation_batch(*data.test)));
  SYNCOPATE_RETURN_IF_ERROR(evaluation.check(snapshot).in(saved.path));
  if (const auto found = evaluation.not_finite(snapshot)) {
    return Status::data_loss(
        fmt::format("{}: the weights of {} hold {}: the run that left them has diverged, and there "
                    "is nothing to evaluate",
                    saved.path, found->name, name_of_not_finite(found->value)));
  }
  EvaluatedModel evaluated{
      .path = saved.path, .model_on_data = model_on_data(config), .samples = data.test->size(), .score = {}};
  const bool is_regression = form.regression;
  const std::vector<std::string> names = data.test->class_names();
  std::string rows = predictions_header(is_regression);
  std::int64_t seen = 0;
  const auto visit = [&](const worker::BatchView& batch, std::span<const float> logits) {
    const std::int64_t first = std::exchange(seen, seen + std::ssize(batch.labels));
    rows += is_regression ? regression_rows(first, batch.targets, logits, data.test->target_scale())
                          : prediction_rows(first, batch.labels, logits, names);
  };
  evaluated.score = evaluation.run(snapshot.weights, snapshot.local_state, snapshot.rows,
                                   request.predictions ? Evaluation::Visit(visit) : nullptr);
  if (request.predictions) SYNCOPATE_RETURN_IF_ERROR(write_whole_file(*request.predictions, rows));
  return evaluated;
}

Result<std::string> evaluate_answer(const std::vector<std::string>& words) {
  SYNCOPATE_ASSIGN_OR_RETURN(auto read, command_words(words));
  auto& [paths, given] = read;
  if (paths.size() != 1) {
    return Status::invalid_argument(fmt::format(
        "evaluate: needs the results of one run, as results/NAME, a checkpoint or a file of weights; {} were given",
        paths.size()));
  }
  EvaluateRequest request{.path = paths.front(), .options = {}, .predictions = {}};
  if (const auto file = given.find(kPredictions); file != given.end()) {
    request.predictions = file->second;
    given.erase(file);
  }
  request.options.insert(given.begin(), given.end());
  SYNCOPATE_ASSIGN_OR_RETURN(const EvaluatedModel model, evaluate(request));
  const auto line = [](const char* name, const std::string& value) { return fmt::format("  {:<16}{}\n", name, value); };
  std::string text = fmt::format("{}: {}\n", model.path, model.model_on_data);
  text += line("test samples", format_count(static_cast<double>(model.samples)));
  text += line("test loss", fmt::format("{}", model.score.loss));
  if (!model.score.figures.r2) text += line("test accuracy", fmt::format("{}", model.score.accuracy));
  if (headline_name(model.score.figures) != std::string_view("accuracy")) {
    text += line("test figures", to_text(model.score.accuracy, model.score.figures));
  }
  if (request.predictions) text += line("predictions", *request.predictions);
  return text;
}

}  // namespace syncopate::experiments
