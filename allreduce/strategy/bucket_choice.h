// BucketChoice: the buckets in which gradients are reduced. Their size is given, or searched for in the first steps and
// agreed on by all ranks. One thread, which carries out the agreement.
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
  // `bytes` 0 asks for a search. `on_end`, which may be null, receives its result. The collective must outlive this
  // object.
  BucketChoice(Collective& collective, std::size_t bytes, std::function<void(const std::string&)> on_end)
      : collective_(collective), bytes_(bytes), on_end_(std::move(on_end)) {}

  // Cuts the layout. Call it first.
  void cut(const ParamLayout& layout);
  // The ranges that backward reports, in its order: each bucket is one of them or several neighbours.
  const std::vector<Range>& grains() const { return grains_; }
  // All buckets that may be used, for the agreement of ranks.
  std::vector<Range> all_buckets() const;

  // Call it second: an operation of all ranks, like Collective::allocate. `found` is the size that an earlier search
  // has found, which is then not searched for again; 0 for none.
  Status prepare(std::uint64_t found);

  // The buckets of the next step.
  std::span<const Range> buckets() const { return candidates_[chosen_].buckets; }
  // Reports how long that step took, at its end. After the last step of the search the ranks agree on the sum of their
  // times.
  Status step_took(Duration time, TimePoint deadline);
  // Call it after the last step of the run.
  void leave() const;
  // The size that a search has found; 0 if it has not ended, or if there was none.
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
  std::size_t chosen_ = 0;  // index in candidates_
  std::span<float> times_;  // by candidate, in the collective's memory
  std::uint64_t found_ = 0;
};

}  // namespace syncopate::allreduce
