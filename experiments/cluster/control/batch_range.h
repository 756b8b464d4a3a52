// BatchRange: consecutive batches of a job.
#pragma once

#include <cstdint>

namespace syncopate::experiments {

// The batches from `begin` up to but not including `end`, by their numbers.
struct BatchRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const { return end - begin; }
  bool operator==(const BatchRange&) const = default;
};

}  // namespace syncopate::experiments
