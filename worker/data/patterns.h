// patterns: colour images of any size in any number of classes, generated while they are read, so that they take no
// memory: for models of photographs, whose speed does not depend on what the images show.
//
// A class is a few gratings (plane waves over the image, 1 to 8 to a side) of a direction and a colour of its own. A
// sample has them at phases and contrasts of its own, so that no single pixel tells its class, under noise and another
// brightness. Values are near a mean of 0 and a deviation of 1, as normalised photographs have them. They are pure
// functions of seed and index, equal on all machines but for the rounding of sines.
#pragma once

#include <cstdint>
#include <memory>

#include "worker/data/dataset.h"

namespace syncopate::worker {

inline constexpr int kUsualPatternSide = 224, kLargestPatternSide = 4096;
inline constexpr int kUsualPatternClasses = 1000, kMostPatternClasses = 100'000;

struct PatternSizes {
  std::int64_t train = 60'000, test = 10'000;
  int side = kUsualPatternSide;  // pixels
  int classes = kUsualPatternClasses;
};

SampleForm form_of_patterns(const PatternSizes& sizes);
// The two parts have no sample in common.
std::unique_ptr<Dataset> make_patterns_train(std::uint64_t seed, const PatternSizes& sizes);
std::unique_ptr<Dataset> make_patterns_test(std::uint64_t seed, const PatternSizes& sizes);

}  // namespace syncopate::worker
