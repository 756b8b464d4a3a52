#include "worker/data/own/own_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

#include "common/random.h"
#include "common/text/printable_text.h"
#include "worker/data/own/target_values.h"
#include "worker/data/own/value_scale.h"

namespace syncopate::worker {
namespace {

// Samples of one file, perhaps some of them alone.
struct Part {
  std::shared_ptr<const NumberArray> values;
  std::shared_ptr<const TargetValues> target;
  std::vector<std::int64_t> samples;
};

class OwnDataset final : public Dataset {
 public:
  OwnDataset(Part part, SampleForm form, std::shared_ptr<const ValueScale> scale, TargetScale target_scale)
      : part_(std::move(part)), form_(std::move(form)), scale_(std::move(scale)), target_scale_(target_scale) {}

  std::int64_t size() const override { return std::ssize(part_.samples); }
  const SampleForm& form() const override { return form_; }
  Judgement judgement() const override { return form_.regression ? Judgement::kRegression : Judgement::kAccuracy; }
  TargetScale target_scale() const override { return target_scale_; }
  std::vector<std::string> class_names() const override { return part_.target->names; }

  void read(std::int64_t index, std::int64_t /*epoch*/, const SampleRoom& to) const override {
    const std::int64_t sample = part_.samples[static_cast<std::size_t>(index)];
    scale_->read(*part_.values, sample, to.values);
    const auto at = static_cast<std::size_t>(sample);
    to.labels[0] = form_.regression ? 0 : part_.target->labels[at];
    if (form_.regression) to.targets[0] = target_scale_.scaled(part_.target->numbers[at]);
  }
  std::optional<int> fixed_label(std::int64_t index) const override {
    if (form_.regression) return std::nullopt;
    return part_.target->labels[static_cast<std::size_t>(part_.samples[static_cast<std::size_t>(index)])];
  }

 private:
  Part part_;
  SampleForm form_;
  std::shared_ptr<const ValueScale> scale_;
  TargetScale target_scale_;
};

std::vector<std::int64_t> all_samples(std::int64_t size) {
  std::vector<std::int64_t> samples(static_cast<std::size_t>(size));
  std::iota(samples.begin(), samples.end(), std::int64_t{0});
  return samples;
}

Status check_labels(const OwnSamples& samples) {
  const std::int64_t labels = samples.target.size();
  if (labels == samples.values.size()) return {};
  return Status::data_loss(fmt::format("{}: {} labels, expected {}, one for each sample of {}", samples.target.path,
                                       labels, samples.values.size(), samples.path));
}

Status check_finite(const OwnSamples& samples) {
  std::vector<double> values(static_cast<std::size_t>(samples.values.shape().values()));
  for (std::int64_t sample = 0; sample < samples.values.size(); ++sample) {
    samples.values.read(sample, values);
    const auto wrong =
        std::ranges::find_if(values, [](double value) { return !std::isfinite(static_cast<float>(value)); });
    if (wrong == values.end()) continue;
    return Status::data_loss(fmt::format("{}: value {} of sample {} is {}, expected a finite number within 3.4e38",
                                         samples.path, wrong - values.begin(), sample, *wrong));
  }
  return {};
}

std::string shape_text_of(ImageShape shape) {
  if (shape.height == 1 && shape.width == 1) return fmt::format("{} values", shape.channels);
  return fmt::format("{}x{}x{} values", shape.height, shape.width, shape.channels);
}

Status check_same_form(const OwnSamples& train, const OwnSamples& test) {
  if (train.values.shape() != test.values.shape()) {
    return Status::data_loss(fmt::format("{}: samples of {}, expected {} as {} has", test.path,
                                         shape_text_of(test.values.shape()), shape_text_of(train.values.shape()),
                                         train.path));
  }
  if (train.names.size() != test.names.size()) {
    return Status::data_loss(fmt::format("{}: {} named columns, expected {} as {} has: give both parts in one format",
                                         test.path, test.names.size(), train.names.size(), train.path));
  }
  if (train.names != test.names) {
    const auto differing = std::ranges::mismatch(train.names, test.names);
    return Status::data_loss(fmt::format("{}: column '{}' where {} has '{}'", test.path, printable(*differing.in2, 80),
                                         train.path, printable(*differing.in1, 80)));
  }
  return {};
}

// What a run learns of the target: the numbers less their mean, over their deviation.
TargetScale scale_of_targets(const Part& part, Normalisation normalisation) {
  if (normalisation == Normalisation::kNone) return {};
  double mean = 0, squares = 0;
  for (const std::int64_t sample : part.samples) mean += part.target->numbers[static_cast<std::size_t>(sample)];
  mean /= static_cast<double>(part.samples.size());
  for (const std::int64_t sample : part.samples) {
    squares += std::pow(part.target->numbers[static_cast<std::size_t>(sample)] - mean, 2);
  }
  const double deviation = std::sqrt(squares / static_cast<double>(part.samples.size()));
  return {.mean = mean, .deviation = deviation > 0 ? deviation : 1};
}

// Both parts of one file.
Result<std::pair<Part, Part>> split(Part all, const OwnOptions& options, std::uint64_t seed, const std::string& path) {
  const std::int64_t size = all.values->size();
  Part test = all;
  test.samples = drawn_test_samples(size, options.test_fraction, seed);
  if (std::ssize(test.samples) >= size) {
    return Status::invalid_argument(fmt::format(
        "--test-fraction={}: {} has {} samples, and none would be left to train", options.test_fraction, path, size));
  }
  std::vector<std::int64_t> rest;
  std::ranges::set_difference(all.samples, test.samples, std::back_inserter(rest));
  all.samples = std::move(rest);
  return std::pair(std::move(all), std::move(test));
}

Status check_test_classes(const Part& train, const Part& test, const TargetColumn& column) {
  if (train.target->regression) return {};
  std::vector<bool> is_trained(train.target->names.size());
  for (const std::int64_t sample : train.samples) {
    is_trained[static_cast<std::size_t>(train.target->labels[static_cast<std::size_t>(sample)])] = true;
  }
  for (const std::int64_t sample : test.samples) {
    const auto label = static_cast<std::size_t>(test.target->labels[static_cast<std::size_t>(sample)]);
    if (is_trained[label]) continue;
    return Status::data_loss(
        fmt::format("{} is '{}', a class that no training sample has{}", place_of(column, sample),
                    printable(test.target->names[label], 80),
                    column.texts.empty() ? "; if these are numbers to predict, say --task=regression" : ""));
  }
  return {};
}

}  // namespace

std::vector<std::int64_t> drawn_test_samples(std::int64_t samples, double fraction, std::uint64_t seed) {
  constexpr std::uint64_t kStreamOfSplits = 0x73706C6974ull << 16;  // apart from those of weights and order
  std::vector<std::int64_t> permutation = all_samples(samples);
  Random random(seed, kStreamOfSplits);
  for (std::size_t i = permutation.size(); i > 1; --i) std::swap(permutation[i - 1], permutation[random.below(i)]);
  const auto count = std::max<std::int64_t>(1, std::llround(static_cast<double>(samples) * fraction));
  permutation.resize(static_cast<std::size_t>(std::min(samples, count)));
  std::ranges::sort(permutation);
  return permutation;
}

Result<DatasetPair> make_own_dataset(OwnFiles files, const OwnOptions& options, std::uint64_t seed) {
  std::vector<const TargetColumn*> columns{&files.samples.target};
  if (files.test) columns.push_back(&files.test->target);
  for (const OwnSamples* samples : {&files.samples, files.test ? &*files.test : nullptr}) {
    if (samples == nullptr) continue;
    SYNCOPATE_RETURN_IF_ERROR(check_labels(*samples));
    SYNCOPATE_RETURN_IF_ERROR(check_finite(*samples));
  }
  if (files.test) SYNCOPATE_RETURN_IF_ERROR(check_same_form(files.samples, *files.test));
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<TargetValues> targets, target_values(columns, options.task));
  const auto part_of = [&](OwnSamples& samples, std::size_t index) {
    Part part{.values = std::make_shared<const NumberArray>(std::move(samples.values)),
              .target = std::make_shared<const TargetValues>(std::move(targets[index])),
              .samples = {}};
    part.samples = all_samples(part.values->size());
    return part;
  };
  std::pair<Part, Part> parts{part_of(files.samples, 0), {}};
  if (files.test) {
    parts.second = part_of(*files.test, 1);
  } else {
    SYNCOPATE_ASSIGN_OR_RETURN(parts, split(std::move(parts.first), options, seed, files.samples.path));
  }
  const auto& [train, test] = parts;
  SYNCOPATE_RETURN_IF_ERROR(check_test_classes(train, test, *columns.back()));
  const TargetValues& target = *train.target;
  const SampleForm form{.image = train.values->shape(),
                        .classes = target.regression ? 1 : static_cast<int>(target.names.size()),
                        .ids = {},
                        .labels = 1,
                        .regression = target.regression};
  const auto scale =
      std::make_shared<const ValueScale>(ValueScale::of(*train.values, train.samples, options.normalisation));
  const TargetScale target_scale = target.regression ? scale_of_targets(train, options.normalisation) : TargetScale();
  return DatasetPair{.train = std::make_unique<OwnDataset>(train, form, scale, target_scale),
                     .test = std::make_unique<OwnDataset>(test, form, scale, target_scale),
                     .notes = std::move(files.notes)};
}

}  // namespace syncopate::worker
