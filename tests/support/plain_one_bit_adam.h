// 1-bit Adam (Tang et al. 2021, algorithm 1) written out plainly in double precision, as an oracle: whole vectors, all
// workers in one loop. What it adds to the paper is what ours keeps of Adam: both bias corrections, where that of the
// variance stays as it was when the variance was frozen.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "common/param_layout.h"

namespace syncopate::testing_support {

struct PlainOneBitAdam {
  using Values = std::vector<double>;

  int workers = 2;
  int warmup = 5;            // updates of Adam, as it is
  std::vector<Range> parts;  // each has one scale: the mean magnitude of its values
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;

  // What arrives of values + error; the error becomes what does not.
  Values compress(const Values& values, Values& error) const {
    Values sent(values.size());
    for (const Range& part : parts) {
      double sum = 0;
      for (std::size_t i = part.begin; i < part.end; ++i) sum += std::abs(values[i] + error[i]);
      const double scale = sum / static_cast<double>(part.size());
      for (std::size_t i = part.begin; i < part.end; ++i) {
        sent[i] = values[i] + error[i] >= 0 ? scale : -scale;
        error[i] += values[i] - sent[i];
      }
    }
    return sent;
  }

  // The weights after each update, from zeros. `gradient(worker, step)` has `size` values.
  std::vector<Values> descend(std::size_t size, int steps, double rate,
                              const std::function<std::vector<float>(int worker, int step)>& gradient) const {
    const auto n = static_cast<std::size_t>(workers);
    Values x(size), m(size), v(size), server_error(size);
    std::vector<Values> errors(n, Values(size));
    std::vector<Values> history;
    for (int t = 1; t <= steps; ++t) {
      Values mean(size);
      for (std::size_t worker = 0; worker < n; ++worker) {
        const std::vector<float> g = gradient(static_cast<int>(worker), t - 1);
        if (t <= warmup) {
          for (std::size_t i = 0; i < size; ++i) mean[i] += static_cast<double>(g[i]) / workers;
          continue;
        }
        Values own(size);
        for (std::size_t i = 0; i < size; ++i) own[i] = beta1 * m[i] + (1 - beta1) * g[i];
        const Values sent = compress(own, errors[worker]);
        for (std::size_t i = 0; i < size; ++i) mean[i] += sent[i] / workers;
      }
      if (t > warmup) m = compress(mean, server_error);
      for (std::size_t i = 0; i < size; ++i) {
        if (t <= warmup) {
          m[i] = beta1 * m[i] + (1 - beta1) * mean[i];
          v[i] = beta2 * v[i] + (1 - beta2) * mean[i] * mean[i];
        }
        const double variance = v[i] / (1 - std::pow(beta2, std::min(t, warmup)));
        x[i] -= rate * m[i] / (1 - std::pow(beta1, t)) / (std::sqrt(variance) + epsilon);
      }
      history.push_back(x);
    }
    return history;
  }
};

}  // namespace syncopate::testing_support
