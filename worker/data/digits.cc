#include "worker/data/digits.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <numbers>
#include <numeric>
#include <thread>

#include "common/random.h"
#include "common/thread_failure.h"
#include "worker/data/digit_glyphs.h"

namespace syncopate::worker {
namespace {

constexpr int kDigitSide = kDigitShape.height;
constexpr std::size_t kDigitPixels = kDigitSide * kDigitSide;
constexpr double kTurn = 2 * std::numbers::pi;

// Streams of the random generator: one of shapes by index, one of labels by block of ten.
constexpr std::uint64_t kShapeStream = 0;
constexpr std::uint64_t kLabelStream = 1ull << 63;

struct Point {
  double x = 0, y = 0;
};

// Normal, but never further out than two deviations: a handful of freaks would only put a ceiling on accuracy.
double spread(Random& random, double deviation) { return deviation * std::clamp(random.normal(), -2.0, 2.0); }

// A smooth displacement: a few plane waves of low frequency.
class ElasticField {
 public:
  explicit ElasticField(Random& random) {
    for (Wave& wave : waves_) {
      wave = {.fx = random.uniform(-0.9, 0.9),
              .fy = random.uniform(-0.9, 0.9),
              .phase = random.uniform(),
              .dx = spread(random, 0.032),
              .dy = spread(random, 0.032)};
    }
  }

  Point operator()(Point p) const {
    Point moved = p;
    for (const Wave& wave : waves_) {
      const double s = std::sin(kTurn * (wave.fx * p.x + wave.fy * p.y + wave.phase));
      moved.x += wave.dx * s;
      moved.y += wave.dy * s;
    }
    return moved;
  }

 private:
  struct Wave {
    double fx = 0, fy = 0, phase = 0;  // periods a unit, periods
    double dx = 0, dy = 0;             // units
  };
  std::array<Wave, 3> waves_;
};

// From the unit square of the glyph, its centre at 0, to pixels.
class AffineMap {
 public:
  explicit AffineMap(Random& random) {
    const double angle = spread(random, 0.15);
    const double shear = spread(random, 0.14);
    const double width = 22 * random.uniform(0.85, 1.12);
    const double height = 22 * random.uniform(0.86, 1.06);
    const double cosine = std::cos(angle), sine = std::sin(angle);
    xx_ = width * cosine;
    xy_ = height * (-shear * cosine - sine);
    yx_ = width * sine;
    yy_ = height * (cosine - shear * sine);
    x_ = (kDigitSide - 1) / 2.0 + spread(random, 1.2);
    y_ = (kDigitSide - 1) / 2.0 + spread(random, 1.2);
  }

  Point operator()(Point p) const { return {xx_ * p.x + xy_ * p.y + x_, yx_ * p.x + yy_ * p.y + y_}; }

 private:
  double xx_, xy_, yx_, yy_, x_, y_;
};

// Line width along a stroke, in pixels: a mean for the sample, and a slow wave of pressure.
class Pen {
 public:
  explicit Pen(Random& random)
      : radius_(random.uniform(0.65, 1.75)),
        pressure_(random.uniform(0.0, 0.3)),
        phase_(random.uniform()),
        softness_(random.uniform(0.8, 1.6)) {}

  double radius(double along) const { return radius_ * (1 + pressure_ * std::sin(kTurn * (along + phase_))); }
  double softness() const { return softness_; }

 private:
  double radius_, pressure_, phase_, softness_;
};

class Canvas {
 public:
  // Inks every pixel by its distance from the segment a-b: full within `radius`, fading out over `softness` pixels.
  void draw(Point a, Point b, double radius, double softness) {
    const double reach = radius + softness / 2;
    const auto [left, right] = pixels_between(std::min(a.x, b.x) - reach, std::max(a.x, b.x) + reach);
    const auto [top, bottom] = pixels_between(std::min(a.y, b.y) - reach, std::max(a.y, b.y) + reach);
    const double dx = b.x - a.x, dy = b.y - a.y;
    const double scale = 1 / std::max(dx * dx + dy * dy, 1e-9);
    for (int y = top; y < bottom; ++y) {
      double* row = &ink_[static_cast<std::size_t>(y * kDigitSide)];
      const double py = y - a.y;
      for (int x = left; x < right; ++x) {
        const double px = x - a.x;
        const double along = std::min(1.0, std::max(0.0, (px * dx + py * dy) * scale));
        const double ex = px - along * dx, ey = py - along * dy;
        const double inked = std::min(1.0, (reach - std::sqrt(ex * ex + ey * ey)) / softness);
        row[x] = std::max(row[x], inked);
      }
    }
  }

  double ink(std::size_t pixel) const { return ink_[pixel]; }

 private:
  static std::pair<int, int> pixels_between(double low, double high) {
    return {static_cast<int>(std::clamp(std::ceil(low), 0.0, double{kDigitSide})),
            static_cast<int>(std::clamp(std::floor(high) + 1, 0.0, double{kDigitSide}))};
  }

  std::array<double, kDigitPixels> ink_{};
};

// Catmull and Rom 1974, uniform: the curve between p1 and p2 with neighbours p0 and p3, t in [0, 1].
Point catmull_rom(Point p0, Point p1, Point p2, Point p3, double t) {
  const auto blend = [t](double a, double b, double c, double d) {
    return b + 0.5 * t * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)));
  };
  return {blend(p0.x, p1.x, p2.x, p3.x), blend(p0.y, p1.y, p2.y, p3.y)};
}

void draw_stroke(GlyphStroke stroke, Random& random, const ElasticField& bend, const AffineMap& place, const Pen& pen,
                 Canvas& canvas) {
  constexpr int kPieces = 4;  // straight pieces of one curve
  std::array<Point, 16> points;
  const std::size_t count = stroke.size();
  assert(count >= 2 && count <= points.size());
  for (std::size_t i = 0; i < count; ++i) {
    const double jitter_x = spread(random, 0.022), jitter_y = spread(random, 0.022);
    points[i] = {stroke[i].x / 100.0 - 0.5 + jitter_x, stroke[i].y / 100.0 - 0.5 + jitter_y};
  }
  Point from = place(bend(points[0]));
  for (std::size_t i = 0; i + 1 < count; ++i) {
    for (int piece = 1; piece <= kPieces; ++piece) {
      const double t = static_cast<double>(piece) / kPieces;
      const Point curve =
          catmull_rom(points[i == 0 ? 0 : i - 1], points[i], points[i + 1], points[std::min(i + 2, count - 1)], t);
      const Point to = place(bend(curve));
      const double along = (static_cast<double>(i) + t) / static_cast<double>(count - 1);
      canvas.draw(from, to, pen.radius(along), pen.softness());
      from = to;
    }
  }
}

// Short scratches that belong to no digit.
void draw_specks(Random& random, Canvas& canvas) {
  const std::uint64_t specks = random.below(4);
  for (std::uint64_t i = 0; i < specks; ++i) {
    const double x = random.uniform(0, kDigitSide), y = random.uniform(0, kDigitSide);
    const double dx = spread(random, 1.5), dy = spread(random, 1.5);
    const double radius = random.uniform(0.3, 0.9);
    canvas.draw({x, y}, {x + dx, y + dy}, radius, 1.0);
  }
}

// One random number serves two pixels: the sum of four of its bytes is near enough to normal.
void develop(const Canvas& canvas, Random& random, std::span<std::uint8_t> image) {
  const double darkness = random.uniform(0.65, 1.0) * 255;
  const double noise = random.uniform(0.0, 24.0) / 147.8;  // deviation of a sum of four uniform bytes
  for (std::size_t pixel = 0; pixel < kDigitPixels; pixel += 2) {
    const std::uint64_t bits = random.next();
    for (std::size_t half = 0; half < 2; ++half) {
      const std::uint64_t word = bits >> (32 * half);
      const auto sum = (word & 255) + (word >> 8 & 255) + (word >> 16 & 255) + (word >> 24 & 255);
      const double value = darkness * canvas.ink(pixel + half) + noise * (static_cast<double>(sum) - 510);
      image[pixel + half] = static_cast<std::uint8_t>(std::clamp(value, 0.0, 255.0));
    }
  }
}

}  // namespace

int digit_label(std::uint64_t seed, std::uint64_t index) {
  std::array<int, kDigitClasses> labels;
  std::iota(labels.begin(), labels.end(), 0);
  Random random(seed, kLabelStream + index / kDigitClasses);
  for (std::size_t i = kDigitClasses - 1; i > 0; --i) std::swap(labels[i], labels[random.below(i + 1)]);
  return labels[index % kDigitClasses];
}

int render_digit(std::uint64_t seed, std::uint64_t index, std::span<std::uint8_t> image) {
  assert(image.size() == kDigitPixels);
  const int label = digit_label(seed, index);
  Random random(seed, kShapeStream + index);
  const std::span<const Glyph> glyphs = glyphs_of(label);
  const Glyph glyph = glyphs[random.below(glyphs.size())];
  const ElasticField bend(random);
  const AffineMap place(random);
  const Pen pen(random);
  Canvas canvas;
  for (const GlyphStroke& stroke : glyph) draw_stroke(stroke, random, bend, place, pen, canvas);
  draw_specks(random, canvas);
  develop(canvas, random, image);
  return label;
}

void render_digits(std::uint64_t seed, std::uint64_t first, std::span<std::uint8_t> images,
                   std::span<std::uint8_t> labels) {
  assert(images.size() == labels.size() * kDigitPixels);
  const auto render = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      labels[i] =
          static_cast<std::uint8_t>(render_digit(seed, first + i, images.subspan(i * kDigitPixels, kDigitPixels)));
    }
  };
  const std::size_t half = labels.size() / 2;
  ThreadFailure failure;
  std::jthread helper([&] { failure.carry([&] { render(0, half); }); });
  render(half, labels.size());
  helper.join();
  failure.rethrow();
}

}  // namespace syncopate::worker
