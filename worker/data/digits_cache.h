// Stores generated digits as IDX files, so that they are generated once and then read, and shared between processes,
// like MNIST.
#pragma once

#include <cstdint>
#include <string>

#include "common/status.h"

namespace syncopate::worker {

struct DigitsCounts {
  std::int64_t train = 60'000;
  std::int64_t test = 10'000;
  bool operator==(const DigitsCounts&) const = default;
};

// Returns the folder below `data_dir` for this set: digits-<train>-<test>-seed<seed>-v<version of the generator>.
std::string digits_folder(const std::string& data_dir, std::uint64_t seed, DigitsCounts counts);

// Generates the set unless its four files exist, and returns its folder. Several processes may do so at once: each file
// appears whole, with the same contents from every process. kResourceExhausted, with path and reason, if it cannot be
// written.
Result<std::string> ensure_digits(const std::string& data_dir, std::uint64_t seed, DigitsCounts counts);

}  // namespace syncopate::worker
