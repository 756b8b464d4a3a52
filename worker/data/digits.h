// digits: handwritten-like digits, each a pure function of (seed, index), the same on every machine.
//
// A skeleton of the class (digit_glyphs.h), with every point moved a little, is drawn as Catmull-Rom curves, bent by a
// smooth elastic field, put through a random affine map, and inked by the distance of each pixel from the curve: thick
// or thin, dark or pale. Specks and noise are added last. All geometry is in double precision, so that a difference of
// compilers in the last bit of a product practically never changes a byte.
#pragma once

#include <cstdint>
#include <span>

#include "worker/data/dataset.h"

namespace syncopate::worker {

inline constexpr ImageShape kDigitShape{28, 28, 1};
// Increased whenever a sample's bytes change, so that old sets are not taken for new ones.
inline constexpr int kDigitsVersion = 1;
// Training sample i has index i; test sample i has index kFirstTestDigit + i.
inline constexpr std::uint64_t kFirstTestDigit = 1'000'000'000'000;

// Returns the label of sample `index`, 0 to 9: pseudo-random, with each class once in every ten indices 10k .. 10k+9.
int digit_label(std::uint64_t seed, std::uint64_t index);

// Writes sample `index`, kDigitShape.values() bytes, where 0 is paper and 255 is the darkest ink. Returns its label.
int render_digit(std::uint64_t seed, std::uint64_t index, std::span<std::uint8_t> image);

// Computes samples first .. first + labels.size() - 1 on two threads.
void render_digits(std::uint64_t seed, std::uint64_t first, std::span<std::uint8_t> images,
                   std::span<std::uint8_t> labels);

}  // namespace syncopate::worker
