// Puts the ways to run a job in the order in which they are worth a closer look, by closed forms. Pure.
#pragma once

#include <vector>

#include "prediction/advice/candidate.h"

namespace syncopate::prediction {

// A way, and what a form says of it.
struct FormedWay {
  Way way;
  StepPrediction prediction;
  double least_step = 0;  // seconds, that no step of it can be below
  double host_bytes = 0;  // that a host with workers needs at the least
};

struct Candidate {
  Way way;
  StepPrediction prediction;
  double host_bytes = 0;
  double score = 0;
  double least = 0;  // the score at the least step
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

// Searches ways_in() the space and `others`, whose forms are known elsewhere. Among ways with equal scores the first of
// both is the best. Fails as predict_step() does.
Result<SearchResult> search(const AdvisedJob& job, const Network& network, const SearchSpace& space,
                            const std::vector<FormedWay>& others = {});

}  // namespace syncopate::prediction
