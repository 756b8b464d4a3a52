// What helps against stale gradients: options of a shard that applies them, and the formulas behind. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/status.h"

namespace syncopate::ps {

// Delay compensation adds to a gradient a first-order guess of how it has changed since its weights were pulled:
//   g + lambda · g·g·(w_now - w_pulled)
// (Zheng et al. 2017, "Asynchronous stochastic gradient descent with delay compensation", algorithm 2: DC-ASGD-c). The
// adaptive form, DC-ASGD-a, divides lambda, element by element, by sqrt(mean square of the gradients + 1e-7), where the
// mean square keeps 0.95 of itself with each gradient.
struct DelayCompensation {
  float lambda = 0;  // 0: none
  bool adaptive = false;

  // "0", "0.04", "adaptive:2"; lambda from 0 to 1000.
  static Result<DelayCompensation> parse(std::string_view text);
  std::string to_string() const;
  bool enabled() const { return lambda > 0; }

  bool operator==(const DelayCompensation&) const = default;
};

struct StalenessOptions {
  bool divide_rate = false;
  DelayCompensation compensation;
  bool correct_momentum = false;
};

// By how much the learning rate of a gradient of that staleness is multiplied: 1 / max(1, staleness) (Zhang, Gupta,
// Lian and Liu 2016, "Staleness-aware async-SGD").
float rate_factor(std::int64_t staleness);

// Updates from gradients of geometrically distributed staleness behave, in expectation, as if they had momentum
//   1 - 1/M = s / (s + 1)
// where M workers make the mean staleness s = M - 1 (Mitliagkas et al. 2016, "Asynchrony begets momentum").
// What the optimizer adds to that is lowered so that both together come to `momentum`, as Omnivore lowers it for more
// asynchrony (Hadjis et al. 2016): never below zero. The rate, which asynchrony divides by M in the same theorem, is
// left alone.
float corrected_momentum(float momentum, double mean_staleness);

// The mean staleness of the last hundred gradients or so: an exponential mean that begins as a plain one.
class MeanStaleness {
 public:
  void add(std::int64_t staleness);
  double value() const { return value_; }
  // How many of them, a hundred at most, it is the mean of.
  std::int64_t count() const { return count_; }
  void restore(std::int64_t count, double value) {
    count_ = count;
    value_ = value;
  }

 private:
  std::int64_t count_ = 0;
  double value_ = 0;
};

}  // namespace syncopate::ps
