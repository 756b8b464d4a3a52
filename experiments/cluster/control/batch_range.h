// Batches of a job, one behind the other.
#pragma once

#include <cstdint>

namespace syncopate::experiments {

// Batches `begin` up to but not `end`, by their numbers.
struct BatchRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const { return end - begin; }
  bool operator==(const BatchRange&) const = default;
};

}  // namespace syncopate::experiments
