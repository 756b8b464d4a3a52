// ImageDataset: labelled images as stored in a file, one byte per value. Processes of one host that map the same file
// share its pages.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "worker/data/dataset.h"

namespace syncopate::worker {

// Converts bytes to floats as 2 · value / 255 - 0.3: paper -0.3, ink 1.7. Pictures of ink on paper then have a mean
// near zero, without which learning is slow (LeCun et al. 1998, "Efficient BackProp", section 4.3). The mapping is the
// same for every data set of ink on paper, and for training and evaluation; photographs have their own
// (cifar_reader.h).
void normalize(std::span<const std::uint8_t> bytes, std::span<float> values);

inline SampleForm form_of_images(ImageShape shape, int classes) {
  return {.image = shape, .classes = classes, .ids = {}, .labels = 1};
}

class ImageDataset : public Dataset {
 public:
  ImageDataset(ImageShape shape, int classes) : form_(form_of_images(shape, classes)) {}

  const SampleForm& form() const override { return form_; }
  ImageShape shape() const { return form_.image; }

  // Returns image `index` as shape().values() bytes in the order (height, width, channel). Thread-safe. `scratch` must
  // have as many bytes; the result lies in it or in the dataset's own memory.
  virtual std::span<const std::uint8_t> image(std::int64_t index, std::span<std::uint8_t> scratch) const = 0;
  virtual int label(std::int64_t index) const = 0;
  std::optional<int> fixed_label(std::int64_t index) const final { return label(index); }

  // Normalized as above, and the same in every epoch, unless a subclass says otherwise.
  void read(std::int64_t index, std::int64_t epoch, const SampleRoom& to) const override;

 private:
  SampleForm form_;
};

}  // namespace syncopate::worker
