#include "experiments/cluster/process/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "common/finite.h"
#include "worker/data/batch_loader.h"
#include "worker/metrics.h"

namespace syncopate::experiments {
namespace {

using worker::Out;

constexpr int kFirstPlaces = 10;  // HR@10
constexpr std::int64_t kMostSamplesABatch = 250;
constexpr std::int64_t kMostLabelsABatch = 2048;

}  // namespace

Result<Evaluation> Evaluation::create(const std::string& model, const worker::Dataset& data,
                                      worker::ComputeBackend& backend, std::int64_t batch) {
  Evaluation evaluation(data, backend, batch);
  std::vector<std::unique_ptr<worker::Model>>& models = evaluation.models_;
  for (std::int64_t begin = 0; begin < data.size(); begin += batch) {
    const auto size = static_cast<int>(std::min(batch, data.size() - begin));
    if (!models.empty() && models.back()->batch_size() == size) continue;
    SYNCOPATE_ASSIGN_OR_RETURN(std::unique_ptr<worker::Model> made,
                               worker::make_model(model, data.form(), size, backend, worker::Pass::kEvaluation));
    models.push_back(std::move(made));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(evaluation.rows_, test_rows(*models.front(), data));
  if (evaluation.rows_.empty()) return evaluation;
  for (const auto& made : models) evaluation.arenas_.emplace_back(made->layout().size());
  return evaluation;
}

Status Evaluation::check(const WeightsSnapshot& snapshot) const {
  const auto wrong = [](const std::string& what) { return Status::data_loss("a snapshot " + what); };
  if (snapshot.rows.size() != rows_.size()) {
    return wrong(fmt::format("with rows of {} tables where the model has {}", snapshot.rows.size(), rows_.size()));
  }
  for (std::size_t table = 0; table < rows_.size(); ++table) {
    const std::vector<RowKey>& rows = snapshot.rows[table];
    if (std::ranges::is_sorted(rows) && std::ranges::includes(rows, rows_[table])) continue;
    return wrong(fmt::format("lacks rows of table {} that the test set touches", layout().tensors()[table].name));
  }
  const std::size_t expected = snapshot_layout(layout(), snapshot.rows).size();
  if (snapshot.weights.size() != expected) {
    return wrong(fmt::format("of {} weights where the model has {}", snapshot.weights.size(), expected));
  }
  if (snapshot.local_state.size() != local_layout().size()) {
    return wrong(fmt::format("with a local state of {} values where the model's has {}", snapshot.local_state.size(),
                             local_layout().size()));
  }
  return {};
}

std::optional<worker::FoundTensor> Evaluation::not_finite(const WeightsSnapshot& snapshot) const {
  const auto in_weights =
      worker::tensor_not_finite(snapshot_layout(layout(), snapshot.rows), snapshot.weights, std::span<const RowKeys>());
  return in_weights ? in_weights
                    : worker::tensor_not_finite(local_layout(), snapshot.local_state, std::span<const RowKeys>());
}

Evaluation::Score Evaluation::run(std::span<const float> weights, std::span<const float> local_state,
                                  const TableKeys& rows, const Visit& visit) {
  for (const std::unique_ptr<worker::Model>& model : models_) backend_->upload(local_state, model->local_state());
  const auto samples = static_cast<double>(data_->size());
  std::int64_t correct = 0;
  double loss = 0;
  std::vector<float> scores;  // for all samples, if the model gives any
  std::vector<int> labels;
  double targets = 0, squares = 0;  // sums of the targets, and of their squares
  for (std::int64_t begin = 0; begin < data_->size(); begin += batch_) {
    const std::int64_t size = std::min(batch_, data_->size() - begin);
    const std::size_t index = models_.front()->batch_size() == size ? 0 : 1;
    worker::Model& model = *models_[index];
    const worker::BatchView batch = read(begin, size);
    model.forward(rows.empty() ? weights : arena_with_rows(index, weights, rows, batch), batch);
    const worker::LossAndCorrect part = model.loss();
    loss += part.loss * static_cast<double>(size) / samples;
    correct += part.correct;
    for (const float target : batch.targets) {
      targets += static_cast<double>(target);
      squares += static_cast<double>(target) * static_cast<double>(target);
    }
    if (visit) visit(batch, model.logits());
    if (const std::span<const float> scored = model.scores(); !scored.empty()) {
      scores.insert(scores.end(), scored.begin(), scored.end());
      labels.insert(labels.end(), batch.labels.begin(), batch.labels.end());
    }
  }
  // A relu in between may have hidden it.
  if (!all_finite(weights) || !all_finite(local_state)) loss = std::numeric_limits<double>::quiet_NaN();
  if (data_->judgement() == worker::Judgement::kRegression) {
    return score_of_regression(loss, squares / samples - targets / samples * (targets / samples));
  }
  return {.accuracy = static_cast<double>(correct) / (samples * data_->form().labels),
          .loss = loss,
          .figures = figures_of(scores, labels)};
}

Evaluation::Score Evaluation::score_of_regression(double loss, double variance) const {
  Score score{.accuracy = std::numeric_limits<double>::quiet_NaN(), .loss = loss, .figures = {}};
  // Targets that are all alike have no variance to be predicted.
  score.figures.r2 = variance > 0 ? 1 - loss / variance : std::numeric_limits<double>::quiet_NaN();
  score.figures.rmse = std::sqrt(loss) * data_->target_scale().deviation;
  return score;
}

std::span<const float> Evaluation::arena_with_rows(std::size_t model, std::span<const float> weights,
                                                   const TableKeys& rows, const worker::BatchView& batch) {
  const ParamLayout& layout = models_[model]->layout();
  const std::span<float> arena = arenas_[model];
  const ParamLayout snapshot = snapshot_layout(layout, rows);
  std::ranges::copy(weights.first(layout.dense().size()), slice(arena, layout.dense()).begin());
  const std::span<const RowKeys> touched = models_[model]->touched_rows(batch);
  for (std::size_t table = 0; table < rows.size(); ++table) {
    const std::size_t width = layout.tensors()[table].width();
    const Range from = snapshot.tensors()[snapshot.tensors().size() - rows.size() + table].range;
    std::span<float> to = slice(arena, layout.tensors()[table].range);
    auto found = rows[table].begin();
    for (const RowKey key : touched[table]) {
      found = std::lower_bound(found, rows[table].end(), key);
      const auto place = static_cast<std::size_t>(found - rows[table].begin());
      std::ranges::copy(weights.subspan(from.begin + place * width, width), to.begin());
      to = to.subspan(width);
    }
  }
  return arena;
}

TestFigures Evaluation::figures_of(std::span<const float> scores, std::span<const int> labels) const {
  if (scores.empty()) return {};
  switch (data_->judgement()) {
    case worker::Judgement::kAccuracy:
    case worker::Judgement::kRegression:
      return {};
    case worker::Judgement::kClicks:
      return {.auc = worker::auc(scores, labels), .hit_rate = {}, .ndcg = {}};
    case worker::Judgement::kRanking: {
      const worker::RankingFigures figures = worker::ranking_figures(scores, worker::kRankedItems, kFirstPlaces);
      return {.auc = {}, .hit_rate = figures.hit_rate, .ndcg = figures.ndcg};
    }
  }
  return {};
}

worker::BatchView Evaluation::read(std::int64_t begin, std::int64_t size) {
  const auto count = static_cast<std::size_t>(size);
  const worker::SampleForm& form = data_->form();
  indices_.resize(count);
  std::iota(indices_.begin(), indices_.end(), begin);
  values_.resize(count * static_cast<std::size_t>(form.values()));
  ids_.resize(count * static_cast<std::size_t>(form.id_columns()));
  labels_.resize(count * static_cast<std::size_t>(form.labels));
  targets_.resize(form.regression ? count : 0);
  worker::read_batch(*data_, indices_, 0, {.values = values_, .ids = ids_, .labels = labels_, .targets = targets_});
  return {.values = values_, .labels = labels_, .ids = ids_, .targets = targets_};
}

std::int64_t evaluation_batch(const worker::Dataset& data) {
  return std::clamp<std::int64_t>(kMostLabelsABatch / data.form().labels, 1, kMostSamplesABatch);
}

}  // namespace syncopate::experiments
