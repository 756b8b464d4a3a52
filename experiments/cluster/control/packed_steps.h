// The records of a worker's steps as they travel to the coordinator: column by column, exact, in about 40 bytes a step
// where a record in memory has 250. Pure.
//
// varint count, then a column for the membership epoch and for each of step_fields(): a byte that says how it is
// written, and its values.
//   0  an arithmetic sequence: the first value and the difference, as zigzag varints
//   1  differences between successive values, the first to 0, as zigzag varints
//   2  the values, as zigzag varints
//   3  the values, as 8 bytes each, little-endian
//   4  the least value as a zigzag varint, a byte that says how many bits, and so many bits of each value less the
//   least
// Numbers with a fraction are IEEE doubles whose bytes stand in reverse order.
// The shortest is taken. Most columns of most runs are arithmetic sequences, of three to six bytes. What follows nearly
// from others is written as what it differs by: the end of a step from the end of the one before and its length, and
// its length from its parts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "common/step_record.h"

namespace syncopate::experiments {

struct SentStep {
  StepRecord record;
  std::int64_t membership_epoch = 0;  // in which the worker was when it had finished the step
};

// The most that are packed together. Each takes memory at the receiver, however short the text is.
inline constexpr std::size_t kMostPackedSteps = 16'384;

// Requires at most kMostPackedSteps.
std::string pack_steps(std::span<const SentStep> steps);

// Fails with data loss if the text is not that of such steps.
Result<std::vector<SentStep>> unpack_steps(std::string_view text);

}  // namespace syncopate::experiments
