// Metrics: how good scores are, beyond the share of correct labels. Pure.
#pragma once

#include <span>

namespace syncopate::worker {

// Returns the area under the ROC curve: the probability that a sample of label 1 has a higher score than one of label
// 0, where equal scores count one half (Fawcett 2006, "An introduction to ROC analysis", section 7). Exact. Returns NaN
// if all labels are the same, or a score is NaN.
double auc(std::span<const float> scores, std::span<const int> labels);

struct RankingFigures {
  double hit_rate = 0;  // the share of groups whose positive is among the first k
  double ndcg = 0;      // the mean of 1 / log2(place + 1), with places from 1, and 0 after the k-th place
};

// `scores` are of groups of `group` items, of which the first is the positive. Among equal scores, and if one is NaN,
// the positive counts as the worse: a model that cannot tell items apart has no hits. He et al. 2017, section 4.1.
RankingFigures ranking_figures(std::span<const float> scores, int group, int k);

}  // namespace syncopate::worker
