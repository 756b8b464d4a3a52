// Reads NumPy's .npy format (NEP 1, versions 1.0 to 3.0).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "common/status.h"
#include "worker/data/own/own_samples.h"

namespace syncopate::worker {

// Both take the bytes of a file, which `holds` keeps alive, and fail with data loss, saying what was found: an array of
// another type, of Python objects, of other dimensions, truncated, or with bytes behind its end.

// An array of numbers, one sample for each of its first dimension.
Result<NumberArray> npy_values(std::span<const std::uint8_t> bytes, std::shared_ptr<const void> holds);
// An array of a number or a text for each sample.
Result<TargetColumn> npy_target(std::span<const std::uint8_t> bytes, std::shared_ptr<const void> holds);
// Takes the only value of each sample of an array of numbers. Fails with data loss if there are more.
Result<TargetColumn> target_of_numbers(const NumberArray& numbers);

}  // namespace syncopate::worker
