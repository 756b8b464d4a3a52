#include "worker/pipeline/pipelined_model.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "worker/microbatch.h"

namespace syncopate::worker {

PipelinedModel::PipelinedModel(const PipelinePlace& place, StageCut cut, int samples, std::vector<StageSlot> slots,
                               ComputeBackend& backend)
    : place_(place),
      cut_(std::move(cut)),
      samples_(samples),
      slots_(std::move(slots)),
      inputs_(slots_.size()),
      backend_(backend),
      actions_(pipeline_actions(place)),
      beside_(place.microbatches > 1 ? layout().size() : 0) {
  assert(slots_.size() == static_cast<std::size_t>(most_in_flight(place)) && samples % place.microbatches == 0);
  for (std::size_t i = 0; i < slots_.size(); ++i) inputs_[i].resize(slots_[i].stage->input_gradient().size());
}

void PipelinedModel::before_reading(std::function<void(Range)> before) {
  for (StageSlot& slot : slots_) {
    slot.model->before_reading([this, before](Range range) {
      if (links_ != nullptr) links_->progress();
      if (before) before(range);
    });
  }
}

BatchView PipelinedModel::part_of(int microbatch) {
  BatchView part = microbatch_of(batch_, samples_, microbatch, place_.microbatches);
  if (!place_.is_first()) part.values = inputs_[static_cast<std::size_t>(microbatch) % slots_.size()];
  return part;
}

void PipelinedModel::forward(In weights, const BatchView& batch) {
  batch_ = batch;
  done_ = 0;
  added_ = 0;
  loss_ = {};
  for (; actions_[done_].is_forward && links_->status().ok(); ++done_)
    pass_forward(weights, actions_[done_].microbatch);
}

void PipelinedModel::backward(In weights, Out gradients, const std::function<void(std::size_t)>& tensor_ready) {
  links_->costs().begin_backward();
  for (; done_ < actions_.size() && links_->status().ok(); ++done_) {
    const PipelineAction action = actions_[done_];
    if (action.is_forward) {
      pass_forward(weights, action.microbatch);
    } else {
      pass_backward(weights, gradients, action.microbatch, tensor_ready);
    }
  }
  links_->flush();  // it keeps a failure
}

void PipelinedModel::pass_forward(In weights, int microbatch) {
  StageSlot& slot = slot_of(microbatch);
  std::vector<float>& input = inputs_[static_cast<std::size_t>(microbatch) % slots_.size()];
  if (!place_.is_first() && !links_->receive(place_.stage - 1, StageMessage::kActivations, input).ok()) return;
  slot.model->forward(weights, part_of(microbatch));
  if (place_.is_last()) {
    const LossAndCorrect loss = slot.model->loss();
    loss_.loss += loss.loss;
    loss_.correct += loss.correct;
  } else {
    links_->send(place_.stage + 1, StageMessage::kActivations, slot.stage->outputs());
  }
}

void PipelinedModel::pass_backward(In weights, Out gradients, int microbatch,
                                   const std::function<void(std::size_t)>& tensor_ready) {
  StageSlot& slot = slot_of(microbatch);
  if (!place_.is_last() &&
      !links_->receive(place_.stage + 1, StageMessage::kGradient, slot.stage->output_gradient()).ok()) {
    return;
  }
  const Out written = added_ == 0 ? gradients : Out(beside_.span());
  const bool is_final = added_ + 1 == place_.microbatches;
  for (const SharedTensor& shared : cut_.shared) {
    // The layer that owns it adds to what its borrower has written, which is elsewhere.
    const std::span<float> part = slice(std::span<float>(written), shared.range);
    if (shared.owner == place_.stage && !SharedZeros::holds(part.data())) std::ranges::fill(part, 0.0f);
  }
  slot.model->backward(weights, written, [&](std::size_t tensor) {
    if (added_ > 0) add(layout().tensors()[tensor].range, written, gradients);
    if (is_final) tensor_ready(tensor);
  });
  if (!place_.is_first()) links_->send(place_.stage - 1, StageMessage::kGradient, slot.stage->input_gradient());
  for (const SharedTensor& shared : cut_.shared) {
    if (shared.borrower != place_.stage) continue;
    if (added_ > 0) add(shared.range, written, gradients);
    if (is_final) tensor_ready(shared.tensor);
  }
  ++added_;
}

void PipelinedModel::add(Range range, Out from, Out gradients) {
  const Out sum = slice(gradients, range);
  if (!SharedZeros::holds(sum.data())) backend_.add(slice(from, range), sum);
}

}  // namespace syncopate::worker
