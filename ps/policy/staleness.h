// Remedies for stale gradients: the options of a shard that applies them, and their formulas. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/status.h"

namespace syncopate::ps {

// Delay compensation adds to a gradient a first-order estimate of how it has changed since its weights were pulled:
//   g + lambda · g·g·(w_now - w_pulled)
// (Zheng et al. 2017, "Asynchronous stochastic gradient descent with delay compensation", algorithm 2: DC-ASGD-c). The
// adaptive form, DC-ASGD-a, divides lambda, element by element, by sqrt(mean square of the gradients + 1e-7), where the
// mean square keeps 0.95 of itself with each gradient.
struct DelayCompensation {
  float lambda = 0;  // 0: none
  bool adaptive = false;

  // Parses "0", "0.04" or "adaptive:2"; lambda from 0 to 1000.
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

// The factor by which a gradient of that staleness is multiplied before it enters the update, velocity included: 1 /
// max(1, staleness) (Zhang, Gupta, Lian and Liu 2016, "Staleness-aware async-SGD for distributed deep learning",
// equation 6: each gradient has a rate of its own). For rules whose step does not grow with the gradient (adam, adamw,
// adagrad) the rate is multiplied instead, which for them is not equivalent.
float staleness_factor(std::int64_t staleness);

// The momentum to apply instead of the configured one.
struct CorrectedMomentum {
  float momentum = 0;
  float rate_factor = 1;  // multiplies the learning rate
};

// Late gradients act as a kind of momentum. Let q(k) be the share of gradients of staleness k. The expected update is
//   E[w(t+1) - w(t)] = -rate · sum over k of q(k) · g(w(t-k)):
// Gradients pass through a filter whose impulse response is q, with gain 1 and mean delay s, the mean staleness. (For a
// geometric q that filter is momentum s / (s + 1): Mitliagkas et al. 2016, "Asynchrony begets momentum", theorem 4.
// Measured staleness is not geometric: most of it is W - 1.) Momentum m after it is another filter, m^k, with gain 1 /
// (1 - m) and mean delay d(m) = m / (1 - m); Nesterov's has the same gain, and d(m) = m² / (1 - m). For filters in
// series the delays add and the gains multiply. So whatever q is, the response to a gradient keeps the configured gain
// and mean delay if
//   d(m') = d(m) - s   and   rate' = rate · (1 - m') / (1 - m).
// If s is more than d(m), m' is 0, and only the gain is kept: late gradients alone then delay more than was configured.
CorrectedMomentum corrected_momentum(float momentum, bool nesterov, double mean_staleness);

// The mean staleness of about the last hundred gradients: an exponential mean that begins as a plain mean.
class MeanStaleness {
 public:
  void add(std::int64_t staleness);
  double value() const { return value_; }
  // The number of gradients, at most a hundred, that the mean covers.
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
