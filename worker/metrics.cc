#include "worker/metrics.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

namespace syncopate::worker {

double auc(std::span<const float> scores, std::span<const int> labels) {
  assert(scores.size() == labels.size());
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  std::vector<std::pair<float, int>> sorted(scores.size());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (std::isnan(scores[i])) return kNone;
    sorted[i] = {scores[i], labels[i]};
  }
  std::ranges::sort(sorted);
  double positives = 0, negatives = 0, won = 0;  // pairs that a positive has won; half a pair for a tie
  for (std::size_t begin = 0; begin < sorted.size();) {
    double equal_positives = 0, equal_negatives = 0;
    std::size_t end = begin;
    for (; end < sorted.size() && sorted[end].first == sorted[begin].first; ++end) {
      (sorted[end].second == 1 ? equal_positives : equal_negatives) += 1;
    }
    won += equal_positives * (negatives + equal_negatives / 2);
    positives += equal_positives;
    negatives += equal_negatives;
    begin = end;
  }
  return positives == 0 || negatives == 0 ? kNone : won / (positives * negatives);
}

RankingFigures ranking_figures(std::span<const float> scores, int group, int k) {
  const auto size = static_cast<std::size_t>(group);
  assert(!scores.empty() && scores.size() % size == 0);
  RankingFigures sum;
  for (std::size_t begin = 0; begin < scores.size(); begin += size) {
    const std::span<const float> items = scores.subspan(begin, size);
    const auto below = std::ranges::count_if(items.subspan(1), [&](float score) { return score < items.front(); });
    const std::ptrdiff_t place = group - below;
    if (place > k) continue;
    sum.hit_rate += 1;
    sum.ndcg += 1 / std::log2(static_cast<double>(place) + 1);
  }
  const auto groups = static_cast<double>(scores.size() / size);
  return {sum.hit_rate / groups, sum.ndcg / groups};
}

}  // namespace syncopate::worker
