// Keeps generated digits as IDX files, so that they are made once and read, and shared between processes, as MNIST is.
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

// The folder below `data_dir` that holds this very set: digits-<train>-<test>-seed<seed>-v<version of the generator>.
std::string digits_folder(const std::string& data_dir, std::uint64_t seed, DigitsCounts counts);

// Makes the set unless its four files are there, and returns its folder. Processes may do so at once: each file appears
// whole, and is the same whoever wrote it. kResourceExhausted, with path and reason, where it cannot be written.
Result<std::string> ensure_digits(const std::string& data_dir, std::uint64_t seed, DigitsCounts counts);

}  // namespace syncopate::worker
