// A small random generator whose sequence is the same on every machine and library: SplitMix64 (Steele, Lea, Flood
// 2014, "Fast splittable pseudorandom number generators", section 4). The standard's engines are portable, too, but its
// distributions are not.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace syncopate {

class Random {
 public:
  // Two different (seed, stream) pairs give unrelated sequences.
  explicit Random(std::uint64_t seed, std::uint64_t stream = 0) : state_(mix(seed) ^ mix(~stream)) {}

  std::uint64_t next() { return mix(state_ += 0x9E3779B97F4A7C15ull); }

  // Uniform over 0 .. bound-1, without bias beyond 2^-64 (Lemire 2019, section 3). bound > 0.
  std::uint64_t below(std::uint64_t bound) {
    return static_cast<std::uint64_t>((static_cast<Wide>(next()) * bound) >> 64);
  }

  // Uniform over [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }

  // Standard normal, by Box and Muller's transform.
  double normal() {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return radius * std::cos(2.0 * std::numbers::pi * uniform());
  }

 private:
  __extension__ using Wide = unsigned __int128;

  static std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }

  std::uint64_t state_;
};

}  // namespace syncopate
