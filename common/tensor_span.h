// ConstTensorSpan, TensorSpan: like std::span<const float> and std::span<float>, but that the numbers may be of another
// type, which is known at run time. Spans of floats turn into them, and they into spans of floats if that is what they
// are. Only kernels on a device read and write 16-bit numbers.
#pragma once

#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "common/param_layout.h"

namespace syncopate {

enum class ElementType : std::uint8_t {
  kFloat32,
  kBfloat16,  // 8 bits of exponent, 7 of mantissa
  kFloat16,   // IEEE 754 binary16: 5 bits of exponent, 10 of mantissa
};

// In bytes.
constexpr std::size_t size_of(ElementType type) { return type == ElementType::kFloat32 ? 4 : 2; }

template <typename Float>  // float or const float
class BasicTensorSpan {
  using Byte = std::conditional_t<std::is_const_v<Float>, const std::byte, std::byte>;

 public:
  using Address = std::conditional_t<std::is_const_v<Float>, const void*, void*>;

  BasicTensorSpan() = default;
  BasicTensorSpan(Address address, std::size_t size, ElementType type) : address_(address), size_(size), type_(type) {}
  BasicTensorSpan(Float* floats, std::size_t size) : address_(floats), size_(size) {}
  template <typename Floats>
  requires std::convertible_to<Floats&&, std::span<Float>> &&
      (!requires(const Floats& from) { from.address(); })BasicTensorSpan(Floats&& floats)
      : BasicTensorSpan(std::span<Float>(floats).data(), std::span<Float>(floats).size()) {}
  template <typename Other>
  requires std::is_const_v<Float> && std::same_as<Other, float> BasicTensorSpan(const BasicTensorSpan<Other>& other)
      : address_(other.address()), size_(other.size()), type_(other.type()) {}

  ElementType type() const { return type_; }
  std::size_t size() const { return size_; }  // in elements
  std::size_t size_bytes() const { return size_ * size_of(type_); }
  bool empty() const { return size_ == 0; }
  Address address() const { return address_; }
  auto bytes() const { return std::span<Byte>(static_cast<Byte*>(address_), size_bytes()); }
  BasicTensorSpan subspan(std::size_t begin, std::size_t size) const {
    assert(begin + size <= size_);
    return {static_cast<Byte*>(address_) + begin * size_of(type_), size, type_};
  }
  BasicTensorSpan first(std::size_t size) const { return subspan(0, size); }

  // What follows is for floats only.
  Float* data() const {
    assert(type_ == ElementType::kFloat32 || size_ == 0);
    return static_cast<Float*>(address_);
  }
  operator std::span<Float>() const { return {data(), size_}; }
  Float& operator[](std::size_t i) const { return data()[i]; }
  Float* begin() const { return data(); }
  Float* end() const { return data() + size_; }

 private:
  Address address_ = nullptr;
  std::size_t size_ = 0;
  ElementType type_ = ElementType::kFloat32;
};

using TensorSpan = BasicTensorSpan<float>;
using ConstTensorSpan = BasicTensorSpan<const float>;

inline TensorSpan slice(TensorSpan arena, Range range) { return arena.subspan(range.begin, range.size()); }
inline ConstTensorSpan slice(ConstTensorSpan arena, Range range) { return arena.subspan(range.begin, range.size()); }

}  // namespace syncopate
