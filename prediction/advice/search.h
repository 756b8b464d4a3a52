// Puts the ways to run a job in the order in which they are worth a closer look, by closed forms. Pure.
#pragma once

#include "prediction/advice/candidate.h"

namespace syncopate::prediction {

struct Candidate {
  Way way;
  StepPrediction prediction;
  double score = 0;
  double least = 0;  // the score at least_step()
};

// A way that does not fit into the memory of a host with workers.
struct TooLarge {
  Way way;
  double bytes = 0;  // that it needs at the least
};

struct SearchResult {
  std::vector<Candidate> best;      // of each kind, the best first
  std::vector<Candidate> others;    // of these kinds, the best first
  std::vector<TooLarge> too_large;  // of each kind of which no way fits, the smallest need
};

// Among ways with equal scores the first of ways_in() is the best. Fails as predict_step() does.
Result<SearchResult> search(const AdvisedJob& job, const Network& network, const SearchSpace& space);

}  // namespace syncopate::prediction
