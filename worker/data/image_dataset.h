// ImageDataset: labelled images as stored in a file, one byte per value. Processes of one host that map the same file
// share its pages.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "worker/data/dataset.h"
#include "worker/data/pixel_scale.h"

namespace syncopate::worker {

// Converts bytes to floats: shifted, paper is -0.3 and ink 1.7; in units, 0 and 1. The mapping is the same for every
// data set of ink on paper, and for training and evaluation; photographs have their own (cifar_reader.h).
void normalize(std::span<const std::uint8_t> bytes, std::span<float> values, PixelScale scale = PixelScale::kShifted);

inline SampleForm form_of_images(ImageShape shape, int classes) {
  return {.image = shape, .classes = classes, .ids = {}, .labels = 1};
}

class ImageDataset : public Dataset {
 public:
  ImageDataset(ImageShape shape, int classes, PixelScale scale = PixelScale::kShifted)
      : form_(form_of_images(shape, classes)), scale_(scale) {}

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
  PixelScale scale_;
};

}  // namespace syncopate::worker
