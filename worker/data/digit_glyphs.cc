#include "worker/data/digit_glyphs.h"

#include <array>
#include <cassert>

namespace syncopate::worker {
namespace {

constexpr GlyphPoint kZeroOval[] = {{50, 10}, {29, 28}, {25, 55}, {34, 82}, {52, 90},
                                    {70, 78}, {76, 50}, {68, 22}, {50, 10}};
constexpr GlyphPoint kZeroOpen[] = {{62, 15}, {40, 16}, {28, 40}, {30, 70}, {48, 89},
                                    {67, 74}, {72, 45}, {63, 20}, {46, 9}};
constexpr GlyphStroke kZeroOvalStrokes[] = {kZeroOval};
constexpr GlyphStroke kZeroOpenStrokes[] = {kZeroOpen};
constexpr Glyph kZero[] = {kZeroOvalStrokes, kZeroOpenStrokes};

constexpr GlyphPoint kOneStem[] = {{51, 10}, {50, 50}, {49, 90}};
constexpr GlyphPoint kOneFlag[] = {{35, 30}, {44, 22}, {51, 10}};
constexpr GlyphPoint kOneBase[] = {{33, 89}, {50, 90}, {68, 88}};
constexpr GlyphStroke kOnePlainStrokes[] = {kOneStem};
constexpr GlyphStroke kOneFlagStrokes[] = {kOneFlag, kOneStem};
constexpr GlyphStroke kOneBaseStrokes[] = {kOneFlag, kOneStem, kOneBase};
constexpr Glyph kOne[] = {kOnePlainStrokes, kOneFlagStrokes, kOneBaseStrokes};

constexpr GlyphPoint kTwoArc[] = {{28, 30}, {36, 14}, {56, 10}, {70, 24}, {64, 46}, {44, 68}, {26, 88}};
constexpr GlyphPoint kTwoFoot[] = {{26, 88}, {50, 86}, {76, 88}};
constexpr GlyphPoint kTwoLoop[] = {{28, 28}, {42, 12}, {64, 16}, {68, 36}, {52, 62}, {33, 84},
                                   {24, 80}, {34, 71}, {48, 80}, {62, 90}, {77, 82}};
constexpr GlyphStroke kTwoFootStrokes[] = {kTwoArc, kTwoFoot};
constexpr GlyphStroke kTwoLoopStrokes[] = {kTwoLoop};
constexpr Glyph kTwo[] = {kTwoFootStrokes, kTwoLoopStrokes};

constexpr GlyphPoint kThreeTop[] = {{28, 19}, {46, 10}, {66, 20}, {62, 40}, {44, 48}};
constexpr GlyphPoint kThreeBelly[] = {{44, 48}, {65, 54}, {72, 72}, {54, 90}, {26, 82}};
constexpr GlyphPoint kThreeRoof[] = {{28, 13}, {50, 12}, {70, 12}};
constexpr GlyphPoint kThreeSlant[] = {{70, 12}, {58, 27}, {45, 44}};
constexpr GlyphPoint kThreeBowl[] = {{45, 44}, {66, 50}, {73, 70}, {56, 89}, {27, 83}};
constexpr GlyphStroke kThreeRoundStrokes[] = {kThreeTop, kThreeBelly};
constexpr GlyphStroke kThreeFlatStrokes[] = {kThreeRoof, kThreeSlant, kThreeBowl};
constexpr Glyph kThree[] = {kThreeRoundStrokes, kThreeFlatStrokes};

constexpr GlyphPoint kFourOpenHook[] = {{32, 12}, {28, 34}, {31, 54}, {52, 56}, {75, 52}};
constexpr GlyphPoint kFourOpenStem[] = {{66, 14}, {64, 50}, {61, 90}};
constexpr GlyphPoint kFourSlant[] = {{61, 10}, {42, 38}, {23, 63}};
constexpr GlyphPoint kFourBar[] = {{23, 63}, {50, 62}, {79, 61}};
constexpr GlyphPoint kFourStem[] = {{61, 10}, {62, 50}, {61, 90}};
constexpr GlyphStroke kFourOpenStrokes[] = {kFourOpenHook, kFourOpenStem};
constexpr GlyphStroke kFourClosedStrokes[] = {kFourSlant, kFourBar, kFourStem};
constexpr Glyph kFour[] = {kFourOpenStrokes, kFourClosedStrokes};

constexpr GlyphPoint kFiveRoof[] = {{71, 12}, {54, 13}, {36, 12}};
constexpr GlyphPoint kFiveNeck[] = {{36, 12}, {34, 28}, {32, 46}};
constexpr GlyphPoint kFiveBelly[] = {{32, 46}, {54, 40}, {72, 56}, {66, 80}, {46, 90}, {26, 82}};
constexpr GlyphPoint kFiveCurve[] = {{71, 14}, {45, 13}, {33, 31}, {44, 46}, {64, 55}, {68, 75}, {50, 90}, {28, 84}};
constexpr GlyphStroke kFiveCornerStrokes[] = {kFiveRoof, kFiveNeck, kFiveBelly};
constexpr GlyphStroke kFiveCurveStrokes[] = {kFiveCurve};
constexpr Glyph kFive[] = {kFiveCornerStrokes, kFiveCurveStrokes};

constexpr GlyphPoint kSixRound[] = {{65, 13}, {42, 24}, {28, 52}, {32, 80}, {52, 90},
                                    {70, 76}, {64, 56}, {46, 52}, {30, 66}};
constexpr GlyphPoint kSixStraight[] = {{60, 8},  {42, 34}, {28, 64}, {37, 86}, {57, 88},
                                       {69, 72}, {58, 57}, {39, 60}, {30, 72}};
constexpr GlyphStroke kSixRoundStrokes[] = {kSixRound};
constexpr GlyphStroke kSixStraightStrokes[] = {kSixStraight};
constexpr Glyph kSix[] = {kSixRoundStrokes, kSixStraightStrokes};

constexpr GlyphPoint kSevenRoof[] = {{26, 14}, {50, 13}, {74, 14}};
constexpr GlyphPoint kSevenLeg[] = {{74, 14}, {57, 48}, {46, 90}};
constexpr GlyphPoint kSevenBar[] = {{38, 51}, {54, 50}, {70, 48}};
constexpr GlyphPoint kSevenSerif[] = {{26, 26}, {27, 20}, {28, 14}};
constexpr GlyphStroke kSevenPlainStrokes[] = {kSevenRoof, kSevenLeg};
constexpr GlyphStroke kSevenBarStrokes[] = {kSevenRoof, kSevenLeg, kSevenBar};
constexpr GlyphStroke kSevenSerifStrokes[] = {kSevenSerif, kSevenRoof, kSevenLeg};
constexpr Glyph kSeven[] = {kSevenPlainStrokes, kSevenBarStrokes, kSevenSerifStrokes};

constexpr GlyphPoint kEightKnot[] = {{66, 22}, {48, 10}, {32, 24}, {44, 44}, {64, 58}, {70, 76},
                                     {50, 90}, {30, 76}, {38, 56}, {58, 42}, {66, 22}};
constexpr GlyphPoint kEightHead[] = {{50, 10}, {34, 19}, {36, 40}, {50, 48}, {64, 40}, {66, 19}, {50, 10}};
constexpr GlyphPoint kEightBody[] = {{50, 48}, {31, 59}, {30, 80}, {50, 90}, {70, 80}, {69, 59}, {50, 48}};
constexpr GlyphStroke kEightKnotStrokes[] = {kEightKnot};
constexpr GlyphStroke kEightRingsStrokes[] = {kEightHead, kEightBody};
constexpr Glyph kEight[] = {kEightKnotStrokes, kEightRingsStrokes};

constexpr GlyphPoint kNineRing[] = {{68, 24}, {50, 10}, {32, 22}, {34, 42}, {52, 50}, {65, 40}, {68, 24}};
constexpr GlyphPoint kNineStem[] = {{68, 24}, {67, 56}, {60, 90}};
constexpr GlyphPoint kNineTail[] = {{68, 24}, {70, 56}, {58, 85}, {35, 87}};
constexpr GlyphStroke kNineStemStrokes[] = {kNineRing, kNineStem};
constexpr GlyphStroke kNineTailStrokes[] = {kNineRing, kNineTail};
constexpr Glyph kNine[] = {kNineStemStrokes, kNineTailStrokes};

constexpr std::array<std::span<const Glyph>, kDigitClasses> kGlyphs = {kZero, kOne, kTwo,   kThree, kFour,
                                                                       kFive, kSix, kSeven, kEight, kNine};

}  // namespace

std::span<const Glyph> glyphs_of(int digit) {
  assert(digit >= 0 && digit < kDigitClasses);
  return kGlyphs[static_cast<std::size_t>(digit)];
}

}  // namespace syncopate::worker
