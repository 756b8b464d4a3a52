#include "prediction/advice/lead.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace syncopate::prediction {

Lead lead(const Scores& scores, const Errors& errors) {
  // A prediction p with an error e stands for measurements from p / (1 + e) to p / (1 - e).
  if (scores.first / (1 - errors.first) < scores.second / (1 + errors.second)) return Lead::kFirst;
  if (scores.second / (1 - errors.second) < scores.first / (1 + errors.first)) return Lead::kSecond;
  return Lead::kNeither;
}

std::vector<Stretch> stretches(const std::function<Scores(double)>& scores_at, double low, double high,
                               const Errors& errors) {
  assert(0 < low && low < high);
  constexpr double kApart = 1.1;
  constexpr double kClose = 1 + 1e-6;
  const auto lead_at = [&](double value) { return lead(scores_at(value), errors); };
  std::vector<Stretch> all = {{low, low, lead_at(low)}};
  for (double value = low; value < high;) {
    const double next = std::min(value * kApart, high);
    const Lead lead_at_next = lead_at(next);
    if (lead_at_next != all.back().lead) {
      double before = value, behind = next;
      while (behind / before > kClose) {
        const double middle = std::sqrt(before * behind);
        (lead_at(middle) == all.back().lead ? before : behind) = middle;
      }
      all.back().to = behind;
      all.push_back({behind, next, lead_at_next});
    }
    value = next;
  }
  all.back().to = high;
  return all;
}

std::vector<Stretch> whole_stretches(const std::function<Scores(int)>& scores_at, const std::vector<int>& asked,
                                     const Errors& errors) {
  assert(!asked.empty());
  const auto lead_at = [&](int number) { return lead(scores_at(number), errors); };
  std::vector<Stretch> all;
  int before = asked.front();
  for (const int number : asked) {
    const Lead lead_here = lead_at(number);
    if (all.empty()) all.push_back({static_cast<double>(number), 0, lead_here});
    if (lead_here != all.back().lead) {
      int behind = number;
      while (behind - before > 1) {
        const int middle = before + (behind - before) / 2;
        (lead_at(middle) == all.back().lead ? before : behind) = middle;
      }
      all.back().to = before;
      all.push_back({static_cast<double>(behind), 0, lead_here});
    }
    all.back().to = before = number;
  }
  return all;
}

}  // namespace syncopate::prediction
