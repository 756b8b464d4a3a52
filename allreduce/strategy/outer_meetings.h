// OuterMeetings: workers that make steps of their own agree, from time to time, on what they have come to since they
// last agreed: the mean of these differences is the gradient of an update of the weights that they began from, the
// anchor, which is the same on all.
//
// The update is a momentum's (outer_momentum.h), or puts the mean of all workers in the anchor's place. A codec sends
// the differences in fewer bytes, and what it leaves out is kept for the next meeting (error feedback), much as in
// SparseLoCo (Sarfi et al. 2025, "Communication efficient LLM pre-training with SparseLoCo", algorithm 1), where what
// is kept also decays, and values have 2 bits.
//
// Fragments of the weights meet by turns, each once a period, so that fewer bytes are sent at once; and a meeting goes
// on beside the steps that follow its begin (Douillard et al. 2025, "Streaming DiLoCo with overlapping communication",
// sections 3.1 and 3.2). A worker adds what the update has changed to its own weights then, and so keeps the steps it
// has made meanwhile, where the paper mixes both; this is the correction of CoCoD-SGD (Shen et al. 2019, "Faster
// distributed deep net training: computation and communication decoupled stochastic gradient descent", algorithm 1).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "allreduce/collective.h"
#include "allreduce/collective/collective_activity.h"
#include "allreduce/collective/communication_outcome.h"
#include "allreduce/collective/communication_thread.h"
#include "allreduce/compression/compressed_reduction.h"
#include "allreduce/compression/reduction_history.h"
#include "allreduce/strategy/outer_momentum.h"
#include "common/optimizer/optimizer.h"
#include "common/os/aligned_buffer.h"
#include "common/sync_strategy.h"
#include "common/threads.h"

namespace syncopate::allreduce {

struct OuterOptions {
  std::optional<OuterMomentum> momentum;  // empty: the update leads to the mean of all workers
  CodecConfig codec;
  std::uint64_t seed = 0;      // of what the codec draws
  std::int64_t fragments = 1;  // of whole tensors, at most as many as the period has steps
  std::int64_t overlap = 0;    // steps beside which a meeting goes on; fewer than from one fragment's to the next's
  Threads* threads = &os_threads();  // has the thread that sums beside them; must outlive the meetings

  // Whether all workers have the same weights behind the last step of a period.
  bool leave_all_alike() const { return fragments == 1 && overlap == 0; }
  // Whether meetings do no more than leave the mean of all weights on each worker.
  bool are_means() const { return !momentum && codec.kind == CodecKind::kNone && leave_all_alike(); }
};

// One thread at a time, but for the one that sums.
class OuterMeetings {
 public:
  // `collective` and `clock` must outlive it. Each wait ends after `timeout`.
  OuterMeetings(Collective& collective, const OuterOptions& options, std::int64_t period, Duration timeout,
                CollectiveActivity* activity, const Clock& clock);

  // With a codec an operation of all ranks. `weights` are the arena of this layout, and must outlive the meetings.
  // Fails with invalid argument if the layout has fewer tensors than there are to be fragments.
  Status allocate(const ParamLayout& layout, std::span<float> weights);
  // All weights are alike: they are the anchor.
  void begin();
  // Call it behind each update of this worker's weights, the `in_period`th of a period: applies the meeting that ends
  // with this step, and begins the one that is due. Adds to `stats` what was waited for and sent.
  Status after_step(std::int64_t in_period, const StepContext& step, SyncStats& stats);
  // Applies the meeting that is under way, if any.
  Status finish(SyncStats& stats);

  std::span<const float> anchor() const { return anchor_.span(); }
  // Waits for a meeting under way, which is then part of the state. Fails if it has failed.
  Status save(TrainingState& state) const;
  Status restore(const TrainingState& state);

 private:
  void begin_meeting(std::size_t fragment);
  // On the thread that sums, which knows of no later step.
  void sum(std::size_t fragment, const StepContext& step);
  void apply(Range range);

  Collective& collective_;
  const OuterOptions options_;
  const std::int64_t period_;
  const Duration timeout_;
  CollectiveActivity* const activity_;
  const Clock& clock_;
  std::vector<Range> fragments_;
  std::span<float> weights_;
  AlignedBuffer anchor_;
  Optimizer outer_;  // used with a momentum alone
  OptimizerState velocity_;
  std::unique_ptr<CompressedReduction> compressed_;  // null without a codec
  ReductionHistory left_out_;                        // its memories
  // The meeting under way, if any.
  std::optional<std::size_t> meeting_;  // its fragment
  std::int64_t left_ = 0;               // steps until it is applied
  std::span<float> differences_;        // the anchor less the weights, then their sum; the collective's memory
  AlignedBuffer begun_;                 // the weights that it began with
  StepContext step_;
  std::uint64_t ticket_ = 0;
  // What its sum has come to: written by the thread that sums, read once the ticket is done.
  CommunicationOutcome outcome_;
  Duration codec_{};
  mutable CommunicationThread thread_;  // last: it works on all of the above
};

}  // namespace syncopate::allreduce
