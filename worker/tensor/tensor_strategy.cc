#include "worker/tensor/tensor_strategy.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace syncopate::worker {
namespace {

class TensorStrategy final : public SyncStrategy, public Resumable {
 public:
  TensorStrategy(std::unique_ptr<SyncStrategy> of_part, const SplitLayout& layout, bool gathers, TensorLinks& links)
      : of_part_(std::move(of_part)), layout_(layout), gathers_(gathers), links_(links) {
    of_part_->on_weights([this](Range range) { report_weights(range); });
  }

  Resumable* resumable() override { return of_part_->resumable() != nullptr ? this : nullptr; }

  Result<ParamArenas> allocate(const ParamLayout& layout) override {
    SYNCOPATE_RETURN_IF_ERROR(refuse_tables(layout));
    SYNCOPATE_ASSIGN_OR_RETURN(arenas_, of_part_->allocate(layout));
    return arenas_;
  }

  Status restore(const TrainingState& state) override {
    SYNCOPATE_ASSIGN_OR_RETURN(const TrainingState own, layout_.own_state(state));
    return of_part_->resumable()->restore(own);
  }
  Status save(TrainingState& state) const override {
    TrainingState own;
    SYNCOPATE_RETURN_IF_ERROR(of_part_->resumable()->save(own));
    return layout_.add_to_whole(own, links_.rank() == 0, state);
  }

  Result<std::vector<Range>> join() override { return of_part_->join(); }
  std::int64_t first_step() const override { return of_part_->first_step(); }

  void begin_step(const StepContext& step) override {
    whole_ = {};
    links_.costs().begin_forward(step.step);
    of_part_->begin_step(step);
  }
  void gradient_ready(std::size_t bucket) override { of_part_->gradient_ready(bucket); }
  void gradients_complete() override { of_part_->gradients_complete(); }

  Result<SyncStats> finish_step() override {
    // A worker whose others are gone has no gradients to agree on.
    SYNCOPATE_RETURN_IF_ERROR(links_.status());
    SYNCOPATE_ASSIGN_OR_RETURN(SyncStats stats, of_part_->finish_step());
    links_.costs().add_to(stats);
    return stats;
  }

  Status weights_needed(Range range) override { return of_part_->weights_needed(range); }
  Status weights_needed_again(Range range) override { return of_part_->weights_needed_again(range); }

  Status gather_weights(bool wanted) override {
    SYNCOPATE_RETURN_IF_ERROR(of_part_->gather_weights(wanted));
    if (!gathers_) return {};
    if (links_.rank() == 0) whole_.assign(layout_.whole().size(), 0.0f);
    for (std::size_t tensor = 0; tensor < layout_.own().tensors().size(); ++tensor) {
      const Range range = layout_.own().tensors()[tensor].range;
      if (!layout_.share(tensor).is_whole()) {
        SYNCOPATE_RETURN_IF_ERROR(gather(tensor, range));
      } else if (links_.rank() == 0) {
        std::ranges::copy(slice(arenas_.weights, range),
                          slice(std::span(whole_), layout_.whole().tensors()[tensor].range).begin());
      }
    }
    links_.costs().take();  // of no step
    return {};
  }

  JobWeights job_weights() const override { return {.values = whole_}; }
  Status leave() override { return of_part_->leave(); }

 private:
  Status gather(std::size_t tensor, Range all) {
    for (int root = 0; root < links_.size(); ++root) {
      for (Range piece{all.begin, all.begin}; piece.begin < all.end; piece.begin = piece.end) {
        piece.end = std::min(all.end, piece.begin + TensorLinks::kPiece);
        const std::span<const float> own = slice(arenas_.weights, piece);
        piece_.assign(own.begin(), own.end());
        SYNCOPATE_RETURN_IF_ERROR(links_.broadcast(piece_, root));
        if (links_.rank() == 0) layout_.scatter(tensor, root, piece, piece_, whole_);
      }
    }
    return {};
  }

  const std::unique_ptr<SyncStrategy> of_part_;
  const SplitLayout& layout_;
  const bool gathers_;
  TensorLinks& links_;
  ParamArenas arenas_;
  std::vector<float> whole_;  // all weights, from gather_weights to the next step; else, and on other workers, empty
  std::vector<float> piece_;
};

}  // namespace

std::unique_ptr<SyncStrategy> make_tensor_strategy(std::unique_ptr<SyncStrategy> of_part, const SplitLayout& layout,
                                                   bool gathers, TensorLinks& links) {
  return std::make_unique<TensorStrategy>(std::move(of_part), layout, gathers, links);
}

}  // namespace syncopate::worker
