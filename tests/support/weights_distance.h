// How far two sets of weights lie apart.
#pragma once

#include <vector>

namespace syncopate::testing_support {

// |first - second| / |first - from|, Euclidean: relative to how far training has moved the first. Infinite where they
// differ in size, are not numbers, or have not moved. Without `from`, relative to the length of the first.
double relative_distance(const std::vector<float>& first, const std::vector<float>& second,
                         const std::vector<float>& from = {});

}  // namespace syncopate::testing_support
