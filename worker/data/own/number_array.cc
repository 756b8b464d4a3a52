#include "worker/data/own/number_array.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace syncopate::worker {
namespace {

constexpr std::int64_t kLongestSide = 4096;  // of images
constexpr std::int64_t kMostValues = std::int64_t{1} << 26;

double number_of_half(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double sign = (bits >> 15) != 0 ? -1 : 1;
  if (exponent == 31) return fraction == 0 ? sign * HUGE_VAL : std::numeric_limits<double>::quiet_NaN();
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}

template <typename Number>
Number stored(const std::uint8_t* at, bool big_endian) {
  std::array<std::uint8_t, sizeof(Number)> bytes;
  std::memcpy(bytes.data(), at, sizeof(Number));
  if (big_endian) std::ranges::reverse(bytes);
  return std::bit_cast<Number>(bytes);
}

// Calls `visit` with a value of the type that numbers of `type` are stored in; of halves, their bits.
template <typename Visit>
auto with_type(NumberType type, Visit visit) {
  switch (type) {
    case NumberType::kInt8:
      return visit(std::int8_t{});
    case NumberType::kInt16:
      return visit(std::int16_t{});
    case NumberType::kUint16:
    case NumberType::kHalf:
      return visit(std::uint16_t{});
    case NumberType::kInt32:
      return visit(std::int32_t{});
    case NumberType::kUint32:
      return visit(std::uint32_t{});
    case NumberType::kInt64:
      return visit(std::int64_t{});
    case NumberType::kUint64:
      return visit(std::uint64_t{});
    case NumberType::kFloat:
      return visit(float{});
    case NumberType::kDouble:
      return visit(double{});
    default:
      return visit(std::uint8_t{});
  }
}

struct Form {
  ImageShape shape;
  std::array<std::size_t, 3> dimension;  // of the array, that is height, width and channels; 0: there is none
};

Result<Form> form_of(const std::vector<std::int64_t>& lengths) {
  if (lengths.size() > 4) {
    return Status::data_loss(
        fmt::format("has {} dimensions, expected 4 at most: samples, height, width, channels", lengths.size()));
  }
  const auto length = [&](std::size_t dimension) { return static_cast<int>(lengths[dimension]); };
  if (lengths.size() < 2) return Form{.shape = {1, 1, 1}, .dimension = {0, 0, 0}};
  if (lengths.size() == 2) return Form{.shape = {1, 1, length(1)}, .dimension = {0, 0, 1}};
  const auto may_be_channels = [&](std::size_t dimension) {
    return lengths[dimension] == 1 || lengths[dimension] == 3 || lengths[dimension] == 4;
  };
  Form form{.shape = {length(1), length(2), 1}, .dimension = {1, 2, 0}};
  if (lengths.size() == 4 && may_be_channels(1) && !may_be_channels(3)) {
    form = {.shape = {length(2), length(3), length(1)}, .dimension = {2, 3, 1}};
  } else if (lengths.size() == 4) {
    form = {.shape = {length(1), length(2), length(3)}, .dimension = {1, 2, 3}};
  }
  if (std::max({form.shape.height, form.shape.width, form.shape.channels}) > kLongestSide) {
    return Status::data_loss(
        fmt::format("samples of {}, expected sides of 1 to {}", fmt::join(lengths, "x"), kLongestSide));
  }
  return form;
}

}  // namespace

std::size_t bytes_of(NumberType type) {
  return with_type(type, [](auto number) { return sizeof(number); });
}

bool is_whole(NumberType type) {
  return type != NumberType::kHalf && type != NumberType::kFloat && type != NumberType::kDouble;
}

Result<NumberArray> NumberArray::create(std::span<const std::uint8_t> bytes, std::shared_ptr<const void> holds,
                                        NumberType type, bool big_endian, const std::vector<std::int64_t>& lengths,
                                        bool columns_first) {
  if (lengths.empty()) return Status::data_loss("holds a single number, expected one or more for each sample");
  if (std::ranges::any_of(lengths, [](std::int64_t length) { return length < 1; })) {
    return Status::data_loss(fmt::format("holds no numbers: {}", fmt::join(lengths, "x")));
  }
  std::uint64_t expected = bytes_of(type);
  std::int64_t values = 1;
  for (std::size_t dimension = 0; dimension < lengths.size(); ++dimension) {
    const std::int64_t length = lengths[dimension];
    if (static_cast<std::uint64_t>(length) > bytes.size() / expected) {
      expected = std::numeric_limits<std::uint64_t>::max();  // or more
      break;
    }
    expected *= static_cast<std::uint64_t>(length);
    if (dimension > 0) values *= length;
  }
  if (expected != bytes.size()) {
    return Status::data_loss(fmt::format("{}: {} bytes of numbers, expected {} numbers of {} bytes",
                                         expected > bytes.size() ? "truncated" : "trailing bytes", bytes.size(),
                                         fmt::join(lengths, "x"), bytes_of(type)));
  }
  if (values > kMostValues) {
    return Status::data_loss(fmt::format("a sample has {} values, expected {} at most", values, kMostValues));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const Form form, form_of(lengths));
  std::vector<std::int64_t> strides(lengths.size(), 1);
  for (std::size_t i = 1; i < lengths.size(); ++i) {
    const std::size_t at = columns_first ? i : lengths.size() - 1 - i;
    const std::size_t inner = columns_first ? at - 1 : at + 1;
    strides[at] = strides[inner] * lengths[inner];
  }
  NumberArray array;
  array.holds_ = std::move(holds);
  array.bytes_ = bytes;
  array.type_ = type;
  array.big_endian_ = big_endian;
  array.size_ = lengths.front();
  array.shape_ = form.shape;
  array.strides_[0] = strides[0];
  for (std::size_t i = 0; i < 3; ++i) {
    if (form.dimension[i] > 0) array.strides_[i + 1] = strides[form.dimension[i]];
  }
  return array;
}

namespace {

template <typename Number>
NumberArray array_of(std::vector<Number> values, ImageShape shape, NumberType type) {
  const auto each = static_cast<std::int64_t>(shape.values()), all = std::ssize(values);
  const auto kept = std::make_shared<const std::vector<Number>>(std::move(values));
  const std::span bytes(reinterpret_cast<const std::uint8_t*>(kept->data()), kept->size() * sizeof(Number));
  Result<NumberArray> array = NumberArray::create(bytes, kept, type, false, {all / each, each});
  assert(array.ok());
  return std::move(*array);
}

}  // namespace

NumberArray NumberArray::of(std::vector<double> values, ImageShape shape) {
  NumberArray array = array_of(std::move(values), shape, NumberType::kDouble);
  array.shape_ = shape;
  array.strides_ = {shape.values(), shape.width * shape.channels, shape.channels, 1};
  return array;
}

NumberArray NumberArray::of(std::vector<std::uint8_t> values, ImageShape shape) {
  NumberArray array = array_of(std::move(values), shape, NumberType::kUint8);
  array.shape_ = shape;
  array.strides_ = {shape.values(), shape.width * shape.channels, shape.channels, 1};
  return array;
}

template <typename Visit>
void NumberArray::visit(std::int64_t sample, Visit visit) const {
  assert(sample >= 0 && sample < size_);
  with_type(type_, [&](auto number) {
    using Number = decltype(number);
    for (int y = 0; y < shape_.height; ++y) {
      for (int x = 0; x < shape_.width; ++x) {
        const std::int64_t pixel = sample * strides_[0] + y * strides_[1] + x * strides_[2];
        for (int c = 0; c < shape_.channels; ++c) {
          const auto index = static_cast<std::size_t>(pixel + c * strides_[3]);
          const Number found = stored<Number>(bytes_.data() + index * sizeof(Number), big_endian_);
          visit(type_ == NumberType::kHalf ? number_of_half(static_cast<std::uint16_t>(found))
                                           : static_cast<double>(found),
                static_cast<std::size_t>(c));
        }
      }
    }
  });
}

void NumberArray::read(std::int64_t sample, std::span<double> to) const {
  assert(to.size() == static_cast<std::size_t>(shape_.values()));
  visit(sample, [next = to.begin()](double value, std::size_t /*channel*/) mutable { *next++ = value; });
}

void NumberArray::read_scaled(std::int64_t sample, std::span<const double> shift, std::span<const double> factor,
                              std::span<float> to) const {
  assert(to.size() == static_cast<std::size_t>(shape_.values()));
  visit(sample, [&, next = to.begin()](double value, std::size_t channel) mutable {
    *next++ = static_cast<float>((value - shift[channel]) * factor[channel]);
  });
}

double NumberArray::number(std::size_t index) const {
  return with_type(type_, [&](auto number) {
    using Number = decltype(number);
    const Number found = stored<Number>(bytes_.data() + index * sizeof(Number), big_endian_);
    return type_ == NumberType::kHalf ? number_of_half(static_cast<std::uint16_t>(found)) : static_cast<double>(found);
  });
}

}  // namespace syncopate::worker
