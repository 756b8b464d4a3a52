// BucketChoice: the buckets by which gradients are reduced: of the size that is given, or of one that is searched for
// in the first steps, on which all ranks agree. One thread, which carries out the agreement.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "allreduce/collective.h"
#include "allreduce/strategy/bucket_search.h"
#include "common/param_layout.h"

namespace syncopate::allreduce {

class BucketChoice {
 public:
  // `bytes` 0 asks for a search; `on_end`, which may be null, is told what it has come to. The collective outlives it.
  BucketChoice(Collective& collective, std::size_t bytes, std::function<void(const std::string&)> on_end)
      : collective_(collective), bytes_(bytes), on_end_(std::move(on_end)) {}

  // First.
  void cut(const ParamLayout& layout);
  // What backward reports, in its order: each bucket is one of them or several neighbours.
  const std::vector<Range>& grains() const { return grains_; }
  // All buckets that may come up, for the agreement of ranks.
  std::vector<Range> all_buckets() const;

  // Second: an operation of all ranks, as Collective::allocate is. `found` is the size that a search has found before,
  // 0 if none has: it is not searched for again.
  Status prepare(std::uint64_t found);

  // Of the step that comes.
  std::span<const Range> buckets() const { return candidates_[chosen_].buckets; }
  // How long that step took, at its end. The ranks agree on the sum of their times after the last step of the search.
  Status step_took(Duration time, TimePoint deadline);
  // After the last step of the run.
  void leave() const;
  // The size that a search has found; 0 while it has not ended, or where there was none.
  std::uint64_t found() const { return found_; }

 private:
  void tell(const std::string& finding) const {
    if (on_end_) on_end_(finding);
  }

  Collective& collective_;
  const std::size_t bytes_;
  const std::function<void(const std::string&)> on_end_;
  std::vector<Range> grains_;
  std::vector<BucketCandidate> candidates_;
  BucketSearch search_{1};
  std::size_t chosen_ = 0;  // candidate
  std::span<float> times_;  // by candidate, in the collective's memory
  std::uint64_t found_ = 0;
};

}  // namespace syncopate::allreduce
