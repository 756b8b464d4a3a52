// The skeletons from which `digits` are drawn: for each class a few ways in which people write it.
#pragma once

#include <span>

namespace syncopate::worker {

struct GlyphPoint {
  int x = 0;  // 0 (left) to 100 (right)
  int y = 0;  // 0 (top) to 100 (bottom)
};

// A stroke is a smooth curve through its points; at a corner one stroke ends and the next begins.
using GlyphStroke = std::span<const GlyphPoint>;
using Glyph = std::span<const GlyphStroke>;

inline constexpr int kDigitClasses = 10;

// Returns all ways of writing `digit`, 0 to 9. The memory is static.
std::span<const Glyph> glyphs_of(int digit);

}  // namespace syncopate::worker
