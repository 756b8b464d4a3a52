#include "worker/data/held_out.h"

#include <fmt/format.h>

#include <cassert>
#include <cmath>
#include <memory>
#include <utility>

namespace syncopate::worker {
namespace {

// The first samples of a set.
class FirstSamples final : public Dataset {
 public:
  FirstSamples(std::shared_ptr<const Dataset> all, std::int64_t size) : all_(std::move(all)), size_(size) {}

  std::int64_t size() const override { return size_; }
  const SampleForm& form() const override { return all_->form(); }
  Judgement judgement() const override { return all_->judgement(); }
  TargetScale target_scale() const override { return all_->target_scale(); }
  std::vector<std::string> class_names() const override { return all_->class_names(); }
  void read(std::int64_t index, std::int64_t epoch, const SampleRoom& to) const override {
    assert(index >= 0 && index < size_);
    all_->read(index, epoch, to);
  }
  void read_plain(std::int64_t index, const SampleRoom& to) const override { all_->read_plain(index, to); }
  std::optional<int> fixed_label(std::int64_t index) const override { return all_->fixed_label(index); }
  std::optional<double> best_loss() const override { return all_->best_loss(); }

 private:
  std::shared_ptr<const Dataset> all_;
  std::int64_t size_;
};

// The other samples, as a test set has them.
class HeldOutSamples final : public Dataset {
 public:
  HeldOutSamples(std::shared_ptr<const Dataset> all, std::int64_t begin) : all_(std::move(all)), begin_(begin) {}

  std::int64_t size() const override { return all_->size() - begin_; }
  const SampleForm& form() const override { return all_->form(); }
  Judgement judgement() const override { return all_->judgement(); }
  TargetScale target_scale() const override { return all_->target_scale(); }
  std::vector<std::string> class_names() const override { return all_->class_names(); }
  void read(std::int64_t index, std::int64_t /*epoch*/, const SampleRoom& to) const override {
    assert(index >= 0 && index < size());
    all_->read_plain(begin_ + index, to);
  }
  std::optional<int> fixed_label(std::int64_t index) const override { return all_->fixed_label(begin_ + index); }
  std::optional<double> best_loss() const override { return all_->best_loss(); }

 private:
  std::shared_ptr<const Dataset> all_;
  std::int64_t begin_;
};

}  // namespace

std::int64_t trained_samples(std::int64_t samples, double fraction) {
  return static_cast<std::int64_t>(std::floor(static_cast<double>(samples) * (1 - fraction)));
}

Result<DatasetPair> hold_out(DatasetPair pair, double fraction) {
  if (fraction == 0) return pair;
  const std::int64_t all = pair.train->size(), trained = trained_samples(all, fraction);
  if (trained < 1) {
    return Status::invalid_argument(fmt::format(
        "--validation={}: all training samples, of which there are {}, would be held out; use a smaller part", fraction,
        all));
  }
  const std::shared_ptr<const Dataset> samples = std::move(pair.train);
  return DatasetPair{.train = std::make_unique<FirstSamples>(samples, trained),
                     .test = std::move(pair.test),
                     .validation = std::make_unique<HeldOutSamples>(samples, trained),
                     .notes = std::move(pair.notes)};
}

}  // namespace syncopate::worker
