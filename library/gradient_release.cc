#include "library/gradient_release.h"

namespace syncopate::library {

GradientRelease::GradientRelease(const ParamLayout& layout, const std::vector<Range>& buckets)
    : tensors_of_(buckets.size()), buckets_of_(layout.tensors().size()) {
  for (std::size_t tensor = 0; tensor < layout.tensors().size(); ++tensor) {
    const Range range = layout.tensors()[tensor].range;
    for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) {
      if (buckets[bucket].begin >= range.end || range.begin >= buckets[bucket].end) continue;
      tensors_of_[bucket].push_back(tensor);
      buckets_of_[tensor].push_back(bucket);
    }
  }
  begin();
}

void GradientRelease::begin() {
  missing_.clear();
  for (const std::vector<std::size_t>& tensors : tensors_of_) missing_.push_back(tensors.size());
  ready_.assign(buckets_of_.size(), false);
  next_ = 0;
}

}  // namespace syncopate::library
