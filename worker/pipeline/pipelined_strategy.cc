#include "worker/pipeline/pipelined_strategy.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/os/aligned_buffer.h"
#include "common/os/release_pages.h"

namespace syncopate::worker {
namespace {

// Weights are gathered in pieces of so many numbers.
constexpr std::size_t kPiece = std::size_t{1} << 18;

class PipelinedStrategy final : public SyncStrategy, public Resumable {
 public:
  PipelinedStrategy(std::unique_ptr<SyncStrategy> of_stage, PipelinedOptions options, StageLinks& links)
      : of_stage_(std::move(of_stage)), options_(std::move(options)), links_(links) {
    of_stage_->on_weights([this](Range range) { report_weights(range); });
  }

  Resumable* resumable() override { return of_stage_->resumable() != nullptr ? this : nullptr; }

  Result<ParamArenas> allocate(const ParamLayout& layout) override {
    SYNCOPATE_RETURN_IF_ERROR(refuse_tables(layout));
    layout_ = layout;
    SYNCOPATE_ASSIGN_OR_RETURN(arenas_,
                               of_stage_->allocate(layout.part(options_.cut.own(options_.place.stage, layout))));
    return arenas_;
  }

  Status restore(const TrainingState& state) override { return of_stage_->resumable()->restore(state); }
  Status save(TrainingState& state) const override { return of_stage_->resumable()->save(state); }

  Result<std::vector<Range>> join() override {
    SYNCOPATE_ASSIGN_OR_RETURN(std::vector<Range> buckets, of_stage_->join());
    of_stage_buckets_ = buckets.size();
    buckets_ = std::move(buckets);
    for (const SharedTensor& shared : options_.cut.shared) {
      if (is_borrower(shared)) buckets_.push_back(shared.range);
    }
    SYNCOPATE_RETURN_IF_ERROR(share_weights());
    return buckets_;
  }

  std::int64_t first_step() const override { return of_stage_->first_step(); }

  void begin_step(const StepContext& step) override {
    if (std::exchange(has_all_, false)) {
      for (int stage = 1; stage < options_.place.stages; ++stage) {
        for (const Range& own : options_.cut.own(stage, layout_)) {
          release_pages(std::as_writable_bytes(slice(arenas_.weights, own)));
        }
      }
    }
    links_.costs().begin_forward(step.step);
    is_filling_ = begun_++ < options_.place.lag() && begun_ != options_.steps;
    if (is_filling_) return;
    StepContext of_batch = step;
    of_batch.update -= std::min<std::int64_t>(of_batch.update, options_.place.lag());
    of_stage_->begin_step(of_batch);
  }

  void gradient_ready(std::size_t bucket) override {
    if (bucket >= of_stage_buckets_) {
      const std::span<const float> part = slice(arenas_.gradients, buckets_[bucket]);
      for (const SharedTensor& shared : options_.cut.shared) {
        if (is_borrower(shared) && shared.range == buckets_[bucket]) {
          links_.send(shared.owner, StageMessage::kSharedGradient, part);
        }
      }
      return;
    }
    for (const SharedTensor& shared : options_.cut.shared) {
      // The tensor may be in several buckets, of which the last has its beginning.
      if (is_owner(shared) && overlap(shared.range, buckets_[bucket])) {
        if (!take_gradient(shared).ok()) return;
      }
    }
    of_stage_->gradient_ready(bucket);
  }

  void gradients_complete() override {
    if (!is_filling_) of_stage_->gradients_complete();
  }

  Result<SyncStats> finish_step() override {
    // A stage whose neighbour is gone has no gradients to agree on.
    SYNCOPATE_RETURN_IF_ERROR(links_.status());
    SyncStats stats;
    if (!is_filling_) {
      SYNCOPATE_ASSIGN_OR_RETURN(stats, of_stage_->finish_step());
    }
    SYNCOPATE_RETURN_IF_ERROR(share_weights());
    taken_.clear();
    links_.costs().add_to(stats);
    links_.costs().end_step();
    return stats;
  }

  Status weights_needed(Range range) override {
    for (const SharedTensor& shared : options_.cut.shared) {
      if (is_borrower(shared) && overlap(range, shared.range)) SYNCOPATE_RETURN_IF_ERROR(borrow());
    }
    return of_stage_->weights_needed(range);
  }
  Status weights_needed_again(Range range) override { return of_stage_->weights_needed_again(range); }

  Status gather_weights(bool /*wanted*/) override {
    if (!options_.gathers) return {};
    SYNCOPATE_RETURN_IF_ERROR(of_stage_->weights_needed({0, arenas_.weights.size()}));
    for (int stage = 1; stage < options_.place.stages; ++stage) {
      if (!options_.place.is_first() && stage != options_.place.stage) continue;
      for (const Range& own : options_.cut.own(stage, layout_)) {
        SYNCOPATE_RETURN_IF_ERROR(gather(stage, slice(arenas_.weights, own)));
      }
    }
    has_all_ = options_.place.is_first();
    if (!has_all_) SYNCOPATE_RETURN_IF_ERROR(links_.flush());
    links_.costs().take();  // of no step
    return {};
  }

  Status leave() override {
    SYNCOPATE_RETURN_IF_ERROR(borrow());
    // The gradient that the stage behind has made in its last step, where that was not to be the last.
    if (const int lag = options_.place.lag(); lag > 0 && begun_ >= lag && begun_ != options_.steps) {
      SYNCOPATE_RETURN_IF_ERROR(links_.discard(options_.place.behind(), StageMessage::kGradient));
    }
    SYNCOPATE_RETURN_IF_ERROR(links_.flush());
    SYNCOPATE_RETURN_IF_ERROR(of_stage_->leave());
    return options_.gathers_behind_leaving ? gather_weights(true) : Status();
  }

 private:
  bool is_owner(const SharedTensor& shared) const { return shared.owner == options_.place.stage; }
  bool is_borrower(const SharedTensor& shared) const { return shared.borrower == options_.place.stage; }

  // Sends a part of that stage's weights to the first stage, or receives it there.
  Status gather(int stage, std::span<float> weights) {
    for (; !weights.empty(); weights = weights.subspan(std::min(kPiece, weights.size()))) {
      const std::span<float> piece = weights.first(std::min(kPiece, weights.size()));
      SYNCOPATE_RETURN_IF_ERROR(options_.place.is_first() ? links_.receive(stage, StageMessage::kOwnWeights, piece)
                                                          : links_.send(0, StageMessage::kOwnWeights, piece));
    }
    return {};
  }

  // Adds the borrower's part of the gradient, once a step.
  Status take_gradient(const SharedTensor& shared) {
    if (std::ranges::find(taken_, shared.tensor) != taken_.end()) return {};
    taken_.push_back(shared.tensor);
    borrowed_.resize(shared.range.size());
    SYNCOPATE_RETURN_IF_ERROR(links_.receive(shared.borrower, StageMessage::kSharedGradient, borrowed_));
    const std::span<float> sum = slice(arenas_.gradients, shared.range);
    if (SharedZeros::holds(sum.data())) return {};
    for (std::size_t i = 0; i < borrowed_.size(); ++i) sum[i] = borrowed_[i] + sum[i];
    return {};
  }

  // The owner sends the weights of what others borrow; a borrower has to wait for them.
  Status share_weights() {
    for (const SharedTensor& shared : options_.cut.shared) {
      if (is_owner(shared)) {
        SYNCOPATE_RETURN_IF_ERROR(
            links_.costs().counted_behind([&] { return of_stage_->weights_needed(shared.range); }));
        SYNCOPATE_RETURN_IF_ERROR(
            links_.send(shared.borrower, StageMessage::kSharedWeights, slice(arenas_.weights, shared.range)));
      }
      awaits_ = awaits_ || is_borrower(shared);
    }
    return {};
  }

  Status borrow() {
    if (!std::exchange(awaits_, false)) return {};
    for (const SharedTensor& shared : options_.cut.shared) {
      if (!is_borrower(shared)) continue;
      SYNCOPATE_RETURN_IF_ERROR(
          links_.receive(shared.owner, StageMessage::kSharedWeights, slice(arenas_.weights, shared.range)));
    }
    return {};
  }

  const std::unique_ptr<SyncStrategy> of_stage_;
  const PipelinedOptions options_;
  StageLinks& links_;
  ParamLayout layout_;
  ParamArenas arenas_;
  std::vector<Range> buckets_;  // those of of_stage_, and then what is borrowed
  std::size_t of_stage_buckets_ = 0;
  std::int64_t begun_ = 0;          // steps
  bool is_filling_ = false;         // in this step: its batch has its backward pass in a later one, and none has it now
  std::vector<float> borrowed_;     // the borrower's part of a gradient
  std::vector<std::size_t> taken_;  // in this step: tensors whose borrowers' gradients are in the sum
  bool awaits_ = false;             // weights that are borrowed have not come yet
  bool has_all_ = false;            // the arena has other stages' weights
};

}  // namespace

std::unique_ptr<SyncStrategy> make_pipelined_strategy(std::unique_ptr<SyncStrategy> of_stage, PipelinedOptions options,
                                                      StageLinks& links) {
  return std::make_unique<PipelinedStrategy>(std::move(of_stage), std::move(options), links);
}

}  // namespace syncopate::worker
