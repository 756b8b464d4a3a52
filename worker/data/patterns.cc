#include "worker/data/patterns.h"

#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "common/random.h"
#include "worker/data/image_dataset.h"

namespace syncopate::worker {
namespace {

constexpr int kColours = 3;
constexpr int kGratings = 3;
constexpr double kMostWaves = 8;  // to a side
constexpr double kLeastContrast = 0.5;
constexpr double kBrightness = 0.3, kNoise = 0.5;
constexpr std::size_t kKeptNoise = 1 << 16;  // a power of two

// Streams of the random generator: training samples by their index, and all else.
constexpr std::uint64_t kPatternTestStream = 1ull << 56;
constexpr std::uint64_t kPatternClassStream = 2ull << 56;
constexpr std::uint64_t kPatternNoiseStream = 3ull << 56;

struct Grating {
  double waves_across, waves_down;
  std::array<double, kColours> colour;
};

std::array<Grating, kGratings> gratings_of(std::uint64_t seed, int label) {
  Random random(seed, kPatternClassStream + static_cast<std::uint64_t>(label));
  std::array<Grating, kGratings> gratings;
  for (Grating& grating : gratings) {
    const double waves = random.uniform(1, kMostWaves), angle = random.uniform(0, std::numbers::pi);
    grating.waves_across = waves * std::cos(angle);
    grating.waves_down = waves * std::sin(angle);
    for (double& channel : grating.colour) channel = random.uniform(-1, 1);
  }
  return gratings;
}

// The sine and cosine of a wave along one side, by pixel.
struct Wave {
  Wave(int side, double waves, double phase) : sine(static_cast<std::size_t>(side)), cosine(sine.size()) {
    for (std::size_t i = 0; i < sine.size(); ++i) {
      const double angle = 2 * std::numbers::pi * waves * static_cast<double>(i) / side + phase;
      sine[i] = static_cast<float>(std::sin(angle));
      cosine[i] = static_cast<float>(std::cos(angle));
    }
  }

  std::vector<float> sine, cosine;
};

// row[x][c] += colour[c] · sin(across at x + angle down), by the sum of angles.
void add_wave(const Wave& across, float sine_down, float cosine_down, const std::array<float, kColours>& colour,
              std::span<float> row) {
  const float* __restrict sine = across.sine.data();
  const float* __restrict cosine = across.cosine.data();
  float* __restrict values = row.data();
  for (std::size_t x = 0; x < across.sine.size(); ++x) {
    const float wave = sine[x] * cosine_down + cosine[x] * sine_down;
    for (std::size_t c = 0; c < kColours; ++c) values[kColours * x + c] += colour[c] * wave;
  }
}

class Patterns final : public Dataset {
 public:
  // Sample 0 draws from stream `first`.
  Patterns(std::uint64_t seed, std::uint64_t first, std::int64_t size, const PatternSizes& sizes)
      : seed_(seed), first_(first), size_(size), side_(sizes.side), form_(form_of_patterns(sizes)) {
    Random random(seed, kPatternNoiseStream);
    for (float& value : noise_) value = static_cast<float>(kNoise * random.normal());
  }

  std::int64_t size() const override { return size_; }
  const SampleForm& form() const override { return form_; }
  std::optional<int> fixed_label(std::int64_t index) const override {
    Random random = random_of(index);
    return label_from(random);
  }

  void read(std::int64_t index, std::int64_t /*epoch*/, const SampleRoom& to) const override {
    Random random = random_of(index);
    to.labels[0] = label_from(random);
    fill(random, to.values);
    for (const Grating& grating : gratings_of(seed_, to.labels[0])) add(grating, random, to.values);
  }

 private:
  Random random_of(std::int64_t index) const { return Random(seed_, first_ + static_cast<std::uint64_t>(index)); }
  int label_from(Random& random) const {
    return static_cast<int>(random.below(static_cast<std::uint64_t>(form_.classes)));
  }

  // Brightness and noise. Each row has another part of the noise that is kept.
  void fill(Random& random, std::span<float> values) const {
    const auto brightness = static_cast<float>(random.uniform(-kBrightness, kBrightness));
    const std::size_t length = static_cast<std::size_t>(side_) * kColours;
    for (std::size_t begin = 0; begin < values.size(); begin += length) {
      const std::size_t from = random.below(kKeptNoise);
      for (std::size_t i = 0; i < length; ++i) {
        values[begin + i] = brightness + noise_[(from + i) % kKeptNoise];
      }
    }
  }

  void add(const Grating& grating, Random& random, std::span<float> values) const {
    const double phase = random.uniform(0, 2 * std::numbers::pi), contrast = random.uniform(kLeastContrast, 1);
    const Wave across(side_, grating.waves_across, phase), down(side_, grating.waves_down, 0);
    std::array<float, kColours> colour;
    for (std::size_t c = 0; c < kColours; ++c) colour[c] = static_cast<float>(contrast * grating.colour[c]);
    const std::size_t length = static_cast<std::size_t>(side_) * kColours;
    for (std::size_t y = 0; y < down.sine.size(); ++y) {
      add_wave(across, down.sine[y], down.cosine[y], colour, values.subspan(y * length, length));
    }
  }

  std::uint64_t seed_, first_;
  std::int64_t size_;
  int side_;
  SampleForm form_;
  std::vector<float> noise_ = std::vector<float>(kKeptNoise);
};

}  // namespace

SampleForm form_of_patterns(const PatternSizes& sizes) {
  return form_of_images({sizes.side, sizes.side, kColours}, sizes.classes);
}

std::unique_ptr<Dataset> make_patterns_train(std::uint64_t seed, const PatternSizes& sizes) {
  return std::make_unique<Patterns>(seed, 0, sizes.train, sizes);
}

std::unique_ptr<Dataset> make_patterns_test(std::uint64_t seed, const PatternSizes& sizes) {
  return std::make_unique<Patterns>(seed, kPatternTestStream, sizes.test, sizes);
}

}  // namespace syncopate::worker
