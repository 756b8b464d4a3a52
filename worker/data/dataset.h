// Dataset: labelled images as they lie in a file, one byte a value. Many processes of one host map the same file, so
// its pages are shared between them.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace syncopate::worker {

struct ImageShape {
  int height = 0;
  int width = 0;
  int channels = 0;

  int values() const { return height * width * channels; }
  bool operator==(const ImageShape&) const = default;
};

class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual std::int64_t size() const = 0;  // samples
  virtual ImageShape shape() const = 0;
  virtual int classes() const = 0;

  // Sample `index` as shape().values() bytes in the order (height, width, channel). Thread-safe. `scratch` has as many
  // bytes; the result lies in it or in the dataset's own memory.
  virtual std::span<const std::uint8_t> image(std::int64_t index, std::span<std::uint8_t> scratch) const = 0;
  virtual int label(std::int64_t index) const = 0;
};

}  // namespace syncopate::worker
