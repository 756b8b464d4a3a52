// Sums of several buffers, element by element and in the order of the buffers: ((b0 + b1) + b2) + ... So the same bits
// come out whoever computes them.
#pragma once

#include <cstddef>
#include <span>

namespace syncopate::allreduce {

// Each of `buffers` (one at least, of `count` elements) becomes the sum of all. Every element is read once and written
// once in each.
void sum_everywhere(std::span<float* const> buffers, std::size_t count);

// `sum`, of `count` elements, becomes the sum of `parts`, one at least; it overlaps none of them.
void sum_into(float* sum, std::span<const float* const> parts, std::size_t count);

}  // namespace syncopate::allreduce
