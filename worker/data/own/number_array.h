// NumberArray: numbers of any type as they lie in a file, one array for each sample, of up to three dimensions.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/status.h"
#include "worker/data/dataset.h"

namespace syncopate::worker {

enum class NumberType {
  kBool,
  kInt8,
  kUint8,
  kInt16,
  kUint16,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kHalf,
  kFloat,
  kDouble
};

std::size_t bytes_of(NumberType type);
bool is_whole(NumberType type);

class NumberArray {
 public:
  // `lengths` are those of all dimensions, the samples' first; `holds` keeps `bytes` alive. If `columns_first`, the
  // first dimension varies fastest (Fortran's order). Fails with data loss unless there is at least one sample and one
  // number, the bytes are as many as the lengths ask for, and samples have at most three dimensions, of sides that an
  // image may have. One dimension of a sample: its values; two: height and width; three: these and the channels, which
  // are the last, unless the first is 1, 3 or 4 and the last is not (as PyTorch has it).
  static Result<NumberArray> create(std::span<const std::uint8_t> bytes, std::shared_ptr<const void> holds,
                                    NumberType type, bool big_endian, const std::vector<std::int64_t>& lengths,
                                    bool columns_first = false);
  // Takes values in the order (sample, height, width, channel).
  static NumberArray of(std::vector<double> values, ImageShape shape);
  static NumberArray of(std::vector<std::uint8_t> values, ImageShape shape);

  std::int64_t size() const { return size_; }  // samples
  ImageShape shape() const { return shape_; }  // of one; values alone have the shape 1x1xN
  bool whole() const { return is_whole(type_); }

  // Writes the values of a sample in the order (height, width, channel), as they are: what is large beside its
  // differences, as a time in seconds since 1970 is, keeps them.
  void read(std::int64_t sample, std::span<double> to) const;
  // The same, of each channel `factor` times what the value has beyond `shift`.
  void read_scaled(std::int64_t sample, std::span<const double> shift, std::span<const double> factor,
                   std::span<float> to) const;
  // Returns the only value of a sample. Requires shape().values() == 1.
  double value(std::int64_t sample) const { return number(static_cast<std::size_t>(sample * strides_[0])); }

 private:
  double number(std::size_t index) const;
  // Calls visit(value, channel) for the values of a sample, in that order.
  template <typename Visit>
  void visit(std::int64_t sample, Visit visit) const;

  std::shared_ptr<const void> holds_;
  std::span<const std::uint8_t> bytes_;
  NumberType type_ = NumberType::kFloat;
  bool big_endian_ = false;
  std::int64_t size_ = 0;
  ImageShape shape_;
  std::array<std::int64_t, 4> strides_{};  // of samples, height, width and channels, in numbers
};

}  // namespace syncopate::worker
