// Sums of several buffers, element by element and in the order of the buffers: ((b0 + b1) + b2) + ... So the result has
// the same bits whichever rank computes it.
#pragma once

#include <cstddef>
#include <span>

namespace syncopate::allreduce {

// Overwrites each of `buffers` (at least one, of `count` elements) with the sum of all. Every element is read once and
// written once in each buffer.
void sum_everywhere(std::span<float* const> buffers, std::size_t count);

// Overwrites one of `buffers`, at place `to`, with the sum of all.
void sum_in_one(std::span<float* const> buffers, std::size_t to, std::size_t count);

// Writes the sum of `parts` (at least one) to `sum`, of `count` elements, which may be the first of them, and must not
// overlap the others.
void sum_into(float* sum, std::span<const float* const> parts, std::size_t count);

}  // namespace syncopate::allreduce
