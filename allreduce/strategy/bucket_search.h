// BucketSearch: finds the bucket size with the shortest steps by trying each. Pure: it is given the times of steps.
//
// The first steps of a run are skipped, since they are longer than others. Then the candidates take turns of one step,
// in rounds that go up the list and down again, so that a slow spell or a drift of the machine affects all of them
// alike. The number of candidates alone determines when the search ends and what each step tries. So all ranks try the
// same, and need to agree only once, on the measured times.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/param_layout.h"

namespace syncopate::allreduce {

struct BucketCandidate {
  std::size_t bytes = 0;       // as --bucket-bytes
  std::vector<Range> buckets;  // buckets_in_backward_order(layout, bytes)
};

// Sizes from 64 KiB up by factors of four, to the first that holds the whole model, without those that cut it like the
// one before.
std::vector<BucketCandidate> bucket_candidates(const ParamLayout& layout);

class BucketSearch {
 public:
  static constexpr int kSkipped = 5;  // steps
  static constexpr int kMostSteps = 100;
  static constexpr int kMostRounds = 16;  // rounded to an even number

  // Takes 1 to 47 candidates. A single one needs no search: the search has ended at once.
  explicit BucketSearch(std::size_t candidates);

  bool ended() const { return step_ == steps_; }
  // The number of steps from the first to the end of the search.
  int steps() const { return steps_; }
  // The candidate that the next step tries. Requires that the search has not ended.
  std::size_t candidate() const;
  // Reports that step's time.
  void step_took(Duration time);
  // The median time of a step, by candidate. Requires that a search among several has ended.
  std::vector<Duration> medians() const;

 private:
  std::vector<std::vector<Duration>> times_;  // by candidate
  int steps_ = 0;
  int step_ = 0;
};

// Returns the index of the least of `times`.
std::size_t fastest(std::span<const float> times);

// Describes the result of a search: "1 MiB; a step took 1.920 ms with 0.25 MiB, 1.875 ms with 1 MiB". `times` are sums
// over `ranks`, in milliseconds, by candidate.
std::string describe_search(std::span<const BucketCandidate> candidates, std::span<const float> times, int ranks);

}  // namespace syncopate::allreduce
