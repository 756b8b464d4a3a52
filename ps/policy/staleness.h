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

// By how much a gradient of that staleness is multiplied before it enters the update, velocity and all: 1 / max(1,
// staleness) (Zhang, Gupta, Lian and Liu 2016, "Staleness-aware async-SGD for distributed deep learning", equation 6:
// each gradient has a rate of its own). Rules whose step does not grow with the gradient (adam, adamw, adagrad) have
// their rate multiplied instead, which with theirs is not the same.
float staleness_factor(std::int64_t staleness);

// What is applied where `momentum` was asked for.
struct CorrectedMomentum {
  float momentum = 0;
  float rate_factor = 1;  // by which the learning rate is multiplied
};

// Late gradients are momentum of a kind. With q(k) the share of gradients of staleness k, the expected update is
//   E[w(t+1) - w(t)] = -rate · sum over k of q(k) · g(w(t-k)):
// gradients go through a filter whose impulse response is q, of gain 1 and mean delay s, the mean staleness. (For a
// geometric q that filter is momentum s / (s + 1): Mitliagkas et al. 2016, "Asynchrony begets momentum", theorem 4.
// Staleness as it is measured is not geometric: most of it is W - 1.) Momentum m behind it is another filter, m^k: of
// gain 1 / (1 - m) and mean delay d(m) = m / (1 - m); Nesterov's has the same gain, and d(m) = m² / (1 - m). Delays of
// filters behind each other add, and gains multiply. So whatever q is, the response to a gradient keeps the gain and
// the mean delay that were asked for if
//   d(m') = d(m) - s   and   rate' = rate · (1 - m') / (1 - m).
// Where s is more than d(m), m' is 0, and only the gain is kept: late gradients alone delay more than was asked for.
CorrectedMomentum corrected_momentum(float momentum, bool nesterov, double mean_staleness);

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
