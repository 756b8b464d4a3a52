#include "worker/pipeline/pipelined_model.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "worker/microbatch.h"

namespace syncopate::worker {

PipelinedModel::PipelinedModel(const PipelinePlace& place, StageCut cut, int samples,
                               std::vector<std::vector<StageSlot>> slots, ComputeBackend& backend)
    : place_(place),
      cut_(std::move(cut)),
      samples_(samples),
      chunks_(slots.size()),
      backend_(backend),
      actions_(pipeline_actions(place)) {
  assert(slots.size() == static_cast<std::size_t>(place.chunks) && samples % place.microbatches == 0);
  for (std::size_t chunk = 0; chunk < slots.size(); ++chunk) {
    assert(slots[chunk].size() == static_cast<std::size_t>(most_in_flight(place, static_cast<int>(chunk))));
    chunks_[chunk].slots = std::move(slots[chunk]);
    for (StageSlot& slot : chunks_[chunk].slots) {
      slot.input.resize(slot.stage->input_gradient().size());  // none of the chain's first
      if (place.lag() > 0) slot.stash = AlignedBuffer(layout().size());
    }
  }
  if (place.microbatches > 1 || place.lag() > 0) beside_ = AlignedBuffer(layout().size());
}

double PipelinedModel::flops_per_sample() const {
  double sum = 0;
  for (const Chunk& chunk : chunks_) sum += chunk.slots.front().stage->flops_per_sample();
  return sum;
}

void PipelinedModel::initialize(std::uint64_t seed, std::span<float> weights) const {
  for (const Chunk& chunk : chunks_) chunk.slots.front().stage->initialize(seed, weights);
}

void PipelinedModel::before_reading(std::function<void(Range)> before) {
  for (Chunk& chunk : chunks_) {
    for (StageSlot& slot : chunk.slots) {
      slot.model->before_reading([this, before](Range range) {
        if (links_ != nullptr) links_->progress();
        if (before) before(range);
      });
    }
  }
}

void PipelinedModel::forward(In weights, const BatchView& batch) {
  batch_ = batch;
  const std::int64_t step = begun_++;
  if (stashes_weights(place_.schedule)) actions_ = stashing_actions(place_, step, begun_ == steps_);
  backward_passes_ = static_cast<int>(std::ranges::count_if(actions_, [](const PipelineAction& action) {
    return action.chunk == 0 && action.pass == PipelinePass::kBackward;
  }));
  done_ = 0;
  loss_ = {};
  for (int chunk = 0; chunk < place_.chunks; ++chunk) {
    Chunk& of_step = chunks_[static_cast<std::size_t>(chunk)];
    of_step.added = of_step.late_added = 0;
    of_step.reported = cut_.tensors[static_cast<std::size_t>(place_.number_of(chunk)) + 1];
  }
  for (; done_ < actions_.size() && links_->status().ok(); ++done_) {
    if (actions_[done_].pass != PipelinePass::kForward) break;
    pass_forward(actions_[done_], weights);
  }
}

void PipelinedModel::backward(In weights, Out gradients, const std::function<void(std::size_t)>& tensor_ready) {
  links_->costs().begin_backward();
  for (; done_ < actions_.size() && links_->status().ok(); ++done_) {
    act(actions_[done_], weights, gradients, tensor_ready);
  }
  // After its own tensors, which lie behind these in the arena.
  for (const SharedTensor& shared : cut_.shared) {
    if (shared.borrower == place_.stage && links_->status().ok()) tensor_ready(shared.tensor);
  }
  if (backward_passes_ > 0) ++updates_;
  links_->costs().count_staleness(std::exchange(stale_, 0), std::exchange(stalest_, 0));
  // A gradient of this step is read in the next one, if weights are stashed.
  if (!stashes_weights(place_.schedule)) links_->flush();  // it keeps a failure
}

void PipelinedModel::stash(In weights, StageSlot& slot) {
  slot.version = updates_;
  for (const Range& own : params()) {
    const In kept = slice(weights, own);
    if (!SharedZeros::holds(kept.data())) std::ranges::copy(kept, slice(slot.stash.span(), own).begin());
  }
}

void PipelinedModel::act(const PipelineAction& action, In weights, Out gradients, const TensorReady& tensor_ready) {
  switch (action.pass) {
    case PipelinePass::kForward:
      return pass_forward(action, weights);
    case PipelinePass::kBackward:
      return pass_backward(action, weights, gradients, tensor_ready);
    case PipelinePass::kWeights:
      return pass_weights(action, gradients, tensor_ready);
  }
}

void PipelinedModel::pass_forward(const PipelineAction& action, In weights) {
  StageSlot& slot = slot_of(action);
  // Its mean counts with its share of the batch.
  const int number = stashes_weights(place_.schedule) ? 0 : action.microbatch;
  BatchView part = microbatch_of(batch_, samples_, number, place_.microbatches);
  if (!place_.is_first(action.chunk)) {
    if (!links_->receive(place_.before(), StageMessage::kActivations, slot.input).ok()) return;
    part.values = slot.input;
  }
  if (place_.lag() > 0) {
    stash(weights, slot);
    // A batch's memory is the next one's.
    if (place_.is_first(action.chunk)) slot.input.assign(part.values.begin(), part.values.end());
    part.values = slot.input;
  }
  slot.model->forward(weights, part);
  if (place_.is_last(action.chunk)) {
    const LossAndCorrect loss = slot.model->loss();
    loss_.loss += loss.loss;
    loss_.correct += loss.correct;
  } else {
    links_->send(place_.behind(), StageMessage::kActivations, slot.stage->outputs());
  }
}

void PipelinedModel::pass_backward(const PipelineAction& action, In weights, Out gradients,
                                   const TensorReady& tensor_ready) {
  StageSlot& slot = slot_of(action);
  if (!place_.is_last(action.chunk) &&
      !links_->receive(place_.behind(), StageMessage::kGradient, slot.stage->output_gradient()).ok()) {
    return;
  }
  if (place_.lag() > 0) {
    weights = slot.stash.span();
    stale_ += static_cast<double>(updates_ - slot.version) / backward_passes_;
    stalest_ = std::max(stalest_, updates_ - slot.version);
  }
  Chunk& chunk = chunk_of(action);
  const Out written = chunk.added == 0 ? gradients : Out(beside_.span());
  const bool splits = splits_backward(place_.schedule), is_final = chunk.added + 1 == backward_passes_;
  for (const SharedTensor& shared : cut_.shared) {
    // The layer that owns it adds to what its borrower has written, which is elsewhere.
    const std::span<float> part = slice(std::span<float>(written), shared.range);
    const bool is_own = shared.owner == place_.stage && shared.owner_chunk == action.chunk;
    if (is_own && !SharedZeros::holds(part.data())) std::ranges::fill(part, 0.0f);
  }
  const auto made = [&](std::size_t tensor) {
    if (chunk.added > 0) add(layout().tensors()[tensor].range, written, gradients);
    if (is_final && !splits) report_down_to(tensor, chunk, tensor_ready);
  };
  if (splits) {
    slot.model->backward_inputs(weights, written, made);
  } else {
    slot.model->backward(weights, written, made);
  }
  if (!place_.is_first(action.chunk)) {
    links_->send(place_.before(), StageMessage::kGradient, slot.stage->input_gradient());
  }
  for (const SharedTensor& shared : cut_.shared) {
    const bool is_borrowed = shared.borrower == place_.stage && shared.borrower_chunk == action.chunk;
    if (is_borrowed && chunk.added > 0) add(shared.range, written, gradients);
  }
  ++chunk.added;
}

void PipelinedModel::pass_weights(const PipelineAction& action, Out gradients, const TensorReady& tensor_ready) {
  Chunk& chunk = chunk_of(action);
  const Out written = chunk.late_added == 0 ? gradients : Out(beside_.span());
  const bool is_final = chunk.late_added + 1 == place_.microbatches;
  slot_of(action).model->backward_weights(written, [&](std::size_t tensor) {
    if (chunk.late_added > 0) add(layout().tensors()[tensor].range, written, gradients);
    if (is_final) report_down_to(tensor, chunk, tensor_ready);
  });
  ++chunk.late_added;
  const auto number = static_cast<std::size_t>(place_.number_of(action.chunk));
  if (is_final) report_down_to(cut_.tensors[number], chunk, tensor_ready);
}

void PipelinedModel::report_down_to(std::size_t tensor, Chunk& chunk, const TensorReady& tensor_ready) {
  while (chunk.reported > tensor) tensor_ready(--chunk.reported);
}

void PipelinedModel::add(Range range, Out from, Out gradients) {
  const Out sum = slice(gradients, range);
  if (!SharedZeros::holds(sum.data())) backend_.add(slice(from, range), sum);
}

}  // namespace syncopate::worker
