// BlankSamples: samples without content, for a model that computes nothing.
#pragma once

#include <algorithm>

#include "worker/data/dataset.h"

namespace syncopate::worker {

class BlankSamples final : public Dataset {
 public:
  explicit BlankSamples(std::int64_t size) : size_(size) {}

  std::int64_t size() const override { return size_; }
  // One value and one class, both always 0.
  const SampleForm& form() const override {
    static const SampleForm form{.image = {.height = 1, .width = 1, .channels = 1}, .classes = 1, .ids = {}};
    return form;
  }
  bool is_blank() const override { return true; }
  void read(std::int64_t, std::int64_t, const SampleRoom& to) const override {
    std::ranges::fill(to.values, 0.0f);
    std::ranges::fill(to.labels, 0);
  }

 private:
  const std::int64_t size_;
};

}  // namespace syncopate::worker
