// Loops over floats that several rooms need. All arrays of a call have `count` elements, and what is written overlaps
// nothing that is read, but for `sum`, which is both.
#pragma once

#include <cstddef>

namespace syncopate {

// sum[i] += values[i]
void add(const float* values, float* sum, std::size_t count);

// difference[i] = from[i] - what[i]
void subtract(const float* from, const float* what, float* difference, std::size_t count);

// scaled[i] = factor · values[i]
void scale(float factor, const float* values, float* scaled, std::size_t count);

}  // namespace syncopate
