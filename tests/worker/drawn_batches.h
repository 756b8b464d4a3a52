// Batches of images and of texts that are drawn from a seed, for tests of workers that train a model together.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/random.h"
#include "worker/data/dataset.h"
#include "worker/data/image_dataset.h"
#include "worker/data/text_form.h"
#include "worker/model.h"

namespace syncopate::worker {

inline SampleForm image_form() { return form_of_images({2, 2, 3}, 5); }
inline SampleForm text_form() { return form_of_text(6, 11); }

// The batches of a job, drawn from a seed, of whichever form.
class DrawnBatches {
 public:
  DrawnBatches(const SampleForm& form, int samples, std::uint64_t seed = 3)
      : form_(form), samples_(samples), random_(seed) {}

  // Valid until the next call. The last `empty` places have no sample.
  BatchView next(int empty = 0) {
    const auto samples = static_cast<std::size_t>(samples_);
    values_.resize(samples * static_cast<std::size_t>(form_.values()));
    for (float& value : values_) value = static_cast<float>(random_.uniform(-1, 1));
    ids_.resize(samples * static_cast<std::size_t>(form_.id_columns()));
    for (int& id : ids_) id = static_cast<int>(random_.below(static_cast<std::uint64_t>(form_.classes)));
    labels_.resize(samples * static_cast<std::size_t>(form_.labels));
    for (int& label : labels_) label = static_cast<int>(random_.below(static_cast<std::uint64_t>(form_.classes)));
    const std::size_t filled = labels_.size() - static_cast<std::size_t>(empty * form_.labels);
    std::fill(labels_.begin() + static_cast<std::ptrdiff_t>(filled), labels_.end(), -1);
    return {.values = values_, .labels = labels_, .ids = ids_, .empty_places = empty, .weight = empty > 0 ? 1.25 : 1.0};
  }

 private:
  const SampleForm form_;
  const int samples_;
  Random random_;
  std::vector<float> values_;
  std::vector<int> ids_, labels_;
};

}  // namespace syncopate::worker
