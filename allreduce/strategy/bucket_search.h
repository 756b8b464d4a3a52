// BucketSearch: finds the bucket size of the shortest steps by trying each. Pure: it is told how long steps took.
//
// The first steps of a run are skipped, since they are longer than others. Then the candidates take turns of one step,
// in rounds that go up the list and down again, so that a slow spell or a drift of the machine falls on all of them
// alike. When the search ends is known from the number of candidates alone, and so is what each step tries: all ranks
// try the same, and need to agree once, on the times that they have found.
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

// From 64 KiB on by fours, to the first that holds the whole model; without those that cut it as the one before does.
std::vector<BucketCandidate> bucket_candidates(const ParamLayout& layout);

class BucketSearch {
 public:
  static constexpr int kSkipped = 5;  // steps
  static constexpr int kMostSteps = 100;
  static constexpr int kMostRounds = 16;  // of an even number

  // At least 1 candidate, at most 47. A single one needs no search: it has ended at once.
  explicit BucketSearch(std::size_t candidates);

  bool ended() const { return step_ == steps_; }
  // The number of steps from the first to the end of the search.
  int steps() const { return steps_; }
  // What the step that comes tries, until the search has ended.
  std::size_t candidate() const;
  // That step's time.
  void step_took(Duration time);
  // The median time of a step by candidate, once the search among several has ended.
  std::vector<Duration> medians() const;

 private:
  std::vector<std::vector<Duration>> times_;  // by candidate
  int steps_ = 0;
  int step_ = 0;
};

// The index of the least of `times`.
std::size_t fastest(std::span<const float> times);

// What a search has come to: "1 MiB; a step took 1.920 ms with 0.25 MiB, 1.875 ms with 1 MiB". `times` are sums over
// `ranks`, in milliseconds, by candidate.
std::string describe_search(std::span<const BucketCandidate> candidates, std::span<const float> times, int ranks);

}  // namespace syncopate::allreduce
