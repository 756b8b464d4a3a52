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
  constexpr double kApart = 1.05;
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

std::vector<Stretch> whole_stretches(const std::function<Scores(int)>& scores_at, int most, const Errors& errors) {
  assert(most >= 1);
  std::vector<Stretch> all;
  for (int number = 1; number <= most; ++number) {
    const Lead now = lead(scores_at(number), errors);
    if (all.empty() || now != all.back().lead) all.push_back({static_cast<double>(number), 0, now});
    all.back().to = number;
  }
  return all;
}

}  // namespace syncopate::prediction
