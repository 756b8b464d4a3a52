#include "experiments/lab/run/data_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <span>
#include <vector>

#include "common/text/format.h"
#include "common/text/printable_text.h"
#include "experiments/checkpoint/checksum.h"
#include "experiments/cluster/process/data_of.h"
#include "experiments/config/rules/data_rules.h"
#include "experiments/lab/report/csv_text.h"

namespace syncopate::experiments {
namespace {

// Returns "120 samples to train, 30 to test; 4 values a sample; 3 classes: setosa, versicolor, virginica".
std::string description_of(const worker::DatasetPair& data) {
  const worker::SampleForm& form = data.train->form();
  const std::string held_out =
      data.validation ? fmt::format(", {} to validate", format_count(static_cast<double>(data.validation->size())))
                      : "";
  std::string text =
      fmt::format("{} samples to train{}, {} to test; ", format_count(static_cast<double>(data.train->size())),
                  held_out, format_count(static_cast<double>(data.test->size())));
  const worker::ImageShape& shape = form.image;
  text += shape.height == 1 && shape.width == 1
              ? fmt::format("{} values a sample; ", shape.channels)
              : fmt::format("{}x{} pixels of {} channels; ", shape.height, shape.width, shape.channels);
  if (form.regression) {
    const worker::TargetScale scale = data.train->target_scale();
    return text + (scale == worker::TargetScale()
                       ? "regression of the target as it is"
                       : fmt::format("regression of the target less {:.6g}, over {:.6g}", scale.mean, scale.deviation));
  }
  const std::vector<std::string> names = data.train->class_names();
  constexpr std::size_t kMostNames = 20;
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < std::min(names.size(), kMostNames); ++i) {
    shown.push_back(names[i].find_first_of(",\"") == std::string::npos ? names[i] : csv_text(names[i]));
  }
  return text + printable(fmt::format("{} classes: {}{}", form.classes, fmt::join(shown, ", "),
                                      names.size() > kMostNames ? ", ..." : ""),
                          1000);
}

// Returns a checksum of all samples as models see them.
std::string sum_of(const worker::DatasetPair& data) {
  Checksum sum;
  for (const worker::Dataset* part : {data.train.get(), data.validation.get(), data.test.get()}) {
    if (part == nullptr) continue;
    std::vector<float> values(static_cast<std::size_t>(part->form().values())), target(1);
    std::vector<int> label(1);
    for (std::int64_t sample = 0; sample < part->size(); ++sample) {
      part->read_plain(sample, {.values = values, .ids = {}, .labels = label, .targets = target});
      sum.add(std::as_bytes(std::span(values)));
      sum.add(std::as_bytes(std::span(label)));
      sum.add(std::as_bytes(std::span(target)));
    }
  }
  return checksum_text(sum.value());
}

Guessing guessing_on(const worker::Dataset& test) {
  const worker::SampleForm& form = test.form();
  Guessing guessing{.classes = form.classes, .labels = test.size() * form.labels, .judgement = test.judgement()};
  if (guessing.judgement == worker::Judgement::kRanking) guessing.labels = test.size() / worker::kRankedItems;
  std::map<int, std::int64_t> counts;
  for (std::int64_t sample = 0; form.labels == 1 && sample < test.size(); ++sample) {
    const std::optional<int> label = test.fixed_label(sample);
    if (label) guessing.most = std::max(guessing.most, ++counts[*label]);
  }
  return guessing;
}

}  // namespace

Result<DataFacts> data_facts_of(const ResolvedRun& config) {
  const Result<worker::DatasetPair> data = open_data_of(config);
  if (data.status().code() == Code::kResourceExhausted) {
    return Status::resource_exhausted(data.status().message() +
                                      "; --data-dir=DIR names another place for generated data");
  }
  if (!data.ok()) return data.status();
  DataFacts facts{.train_samples = data->train->size(), .best_loss = data->test->best_loss()};
  facts.guessing = guessing_on(*data->test);
  if (!has_own_data(config)) return facts;
  facts.description = description_of(*data);
  facts.notes = data->notes;
  if (config.checkpoint_every || config.resume) facts.sum = sum_of(*data);
  return facts;
}

std::string left_out_text(const ResolvedRun& config, std::int64_t train_samples) {
  constexpr double kWorthSaying = 0.05;  // of a known set, of which a person expects no more than a rest
  const worker::Shuffle shuffle = shuffle_of(config);
  const int workers = shuffle == worker::Shuffle::kWorker ? 1 : config.workers;
  const std::int64_t global = static_cast<std::int64_t>(config.batch_size) * workers, left = train_samples % global;
  if (!config.drop_last || left == 0 || is_profile(config)) return {};
  const double part = static_cast<double>(left) / static_cast<double>(train_samples);
  if (!has_own_data(config) && part < kWorthSaying) return {};
  ResolvedRun with_all = config;
  with_all.drop_last = false;
  return fmt::format(
      "{} of {} training samples ({:.2g} %) are left out of each epoch, {} in each: they fill no batch of {}{}; {}",
      format_count(static_cast<double>(left)), format_count(static_cast<double>(train_samples)), 100 * part,
      shuffle == worker::Shuffle::kOff ? "the same" : "others", config.batch_size,
      workers > 1 ? fmt::format(" on each of {} workers", workers) : "",
      validate_data_order(with_all).ok() ? "--drop-last=off trains them in a smaller one"
                                         : "a smaller --batch-size leaves fewer out");
}

}  // namespace syncopate::experiments
