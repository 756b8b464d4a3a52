// WeightWatch: notices that somebody has written to weights that parameter servers have. It keeps about a thousand
// elements, others of them each time. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace syncopate::library {

class WeightWatch {
 public:
  // `weights` must outlive it.
  explicit WeightWatch(std::span<const float> weights);

  // The weights are as they have come. After as many calls as there are elements between two that are kept, each
  // element has been kept once.
  void remember();
  // Returns an element that is not what it was, bit for bit; none if those that are kept are.
  std::optional<std::size_t> written() const;

 private:
  const std::span<const float> weights_;
  const std::size_t stride_;
  std::size_t first_ = 0;
  std::vector<float> kept_;
};

}  // namespace syncopate::library
