// Metrics: how good scores are, beyond the share of labels that are told right. Pure.
#pragma once

#include <span>

namespace syncopate::worker {

// The area under the ROC curve: the probability that a sample of label 1 has a higher score than one of label 0; of
// equal scores each counts one half (Fawcett 2006, "An introduction to ROC analysis", section 7). Exact. No number
// where all labels are the same, or a score is none.
double auc(std::span<const float> scores, std::span<const int> labels);

struct RankingFigures {
  double hit_rate = 0;  // the share of groups whose positive is among the first k
  double ndcg = 0;      // the mean of 1 / log2(place + 1), the first place being 1, or 0 behind the k-th
};

// `scores` are of groups of `group` items, of which the first is the positive. Of equal scores, and where one is no
// number, the positive counts as the worse: a model that tells nothing apart has no hits. He et al. 2017, section 4.1.
RankingFigures ranking_figures(std::span<const float> scores, int group, int k);

}  // namespace syncopate::worker
