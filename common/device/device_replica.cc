#include "common/device/device_replica.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <memory>

#include "common/optimizer/decay_parts.h"
#include "common/optimizer/update_constants.h"
#include "common/os/aligned_buffer.h"

namespace syncopate {
namespace {

using update_rule::constants_of;

// The counts of a TrainingState: the factor, good steps, skipped steps.
constexpr const char* kLossScale = "loss_scale";

OptimizerConfig without_decay(OptimizerConfig rule) {
  rule.weight_decay = 0;
  return rule;
}

bool is_loss_scale(std::span<const std::int64_t> counts) {
  if (counts.size() != 3 || counts[1] < 0 || counts[1] >= LossScale::kGrowthSteps || counts[2] < 0) return false;
  const auto factor = static_cast<std::uint64_t>(counts[0]);
  return std::has_single_bit(factor) && factor <= static_cast<std::uint64_t>(LossScale::kMost);
}

Status wait_for_copies(Device& device, TimePoint deadline) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::unique_ptr<Event> done, device.make_event());
  device.compute().record(*done);
  return device.wait(*done, deadline);
}

}  // namespace

Result<ParamArenas> DeviceReplica::allocate(const ParamLayout& layout) {
  assert(layout.tables().empty());
  const std::size_t size = layout.size();
  SYNCOPATE_ASSIGN_OR_RETURN(arenas_.weights, allocate_floats(device_, size));
  if (element_ == ElementType::kFloat32) {
    SYNCOPATE_ASSIGN_OR_RETURN(arenas_.gradients, allocate_floats(device_, size));
  } else {
    for (TensorSpan* arena : {&arenas_.rounded_weights, &arenas_.rounded_gradients}) {
      SYNCOPATE_ASSIGN_OR_RETURN(const std::span<std::byte> memory, device_.allocate(size * size_of(element_)));
      *arena = {memory.data(), size, element_};
    }
  }
  SYNCOPATE_ASSIGN_OR_RETURN(state_, allocate_state(device_, optimizer_, size));
  if (optimizer_.weight_decay != 0 && !optimizer_.decay_all) undecayed_ = undecayed_ranges(layout);
  for (Turn& turn : turns_) {
    SYNCOPATE_ASSIGN_OR_RETURN(turn.host_constants, device_.allocate_pinned(sizeof(StepConstants)));
    SYNCOPATE_ASSIGN_OR_RETURN(turn.constants, device_.allocate(sizeof(StepConstants)));
  }
  if (is_loss_scaled()) SYNCOPATE_RETURN_IF_ERROR(allocate_loss_scale());
  return arenas_;
}

Status DeviceReplica::allocate_loss_scale() {
  SYNCOPATE_ASSIGN_OR_RETURN(loss_scale_, device_.allocate(sizeof(LossScale)));
  for (Turn& turn : turns_) {
    SYNCOPATE_ASSIGN_OR_RETURN(turn.loss_scale, device_.allocate_pinned(sizeof(LossScale)));
  }
  arenas_.loss_scale = {&loss_scale()->factor, 1};
  return {};
}

LossScale* DeviceReplica::loss_scale() const { return reinterpret_cast<LossScale*>(loss_scale_.data()); }

// Copies the scale that training goes on with, too: join comes after restore.
Status DeviceReplica::begin(TimePoint deadline) {
  if (!arenas_.rounded_weights.empty()) device_.compute().convert(arenas_.weights, arenas_.rounded_weights);
  if (!is_loss_scaled()) return {};
  std::memcpy(turns_.front().loss_scale.data(), &last_scale_, sizeof(last_scale_));
  device_.compute().copy_to_device(turns_.front().loss_scale, loss_scale_);
  return wait_for_copies(device_, deadline).in("join: to the device");
}

Status DeviceReplica::save(TrainingState& state, TimePoint deadline) const {
  state.step = step_ < 0 ? first_step_ : step_ + 1;
  const auto copy = [&](const char* name, std::span<const float> values) {
    if (values.empty()) return;
    const std::span<float> host = state.piece(name, {0, values.size()});
    device_.compute().copy_to_host(std::as_bytes(values), std::as_writable_bytes(host));
  };
  copy(state_part::kWeights, arenas_.weights);
  for (std::size_t i = 0; i < kMostMemories; ++i) copy(state_part::kOptimizer[i], state_.memories[i]);
  if (is_loss_scaled()) {
    state.counts[kLossScale] = {static_cast<std::int64_t>(last_scale_.factor), last_scale_.good_steps,
                                last_scale_.skipped_steps};
  }
  return wait_for_copies(device_, deadline).in("save: from the device");
}

Status DeviceReplica::restore(const TrainingState& state, TimePoint deadline) {
  first_step_ = finished_ = state.step;
  if (const auto saved = state.counts.find(kLossScale); is_loss_scaled() && saved != state.counts.end()) {
    if (!is_loss_scale(saved->second)) return Status::data_loss("restore: the loss scale is none that a step leaves");
    last_scale_ = {.factor = static_cast<float>(saved->second[0]),
                   .good_steps = static_cast<std::int32_t>(saved->second[1]),
                   .skipped_steps = static_cast<std::int32_t>(saved->second[2])};
  }
  std::vector<AlignedBuffer> hosts;  // until the copies are done
  const auto copy = [&](const char* name, std::span<float> to) -> Status {
    if (to.empty()) return {};
    AlignedBuffer& host = hosts.emplace_back(to.size());
    SYNCOPATE_RETURN_IF_ERROR(state.read(name, {0, to.size()}, host.span()));
    device_.compute().copy_to_device(std::as_bytes(host.span()), std::as_writable_bytes(to));
    return {};
  };
  Status status = copy(state_part::kWeights, arenas_.weights);
  for (std::size_t i = 0; i < kMostMemories && status.ok(); ++i) {
    status = copy(state_part::kOptimizer[i], state_.memories[i]);
  }
  // Also where one has failed: copies that were given still read their buffers.
  const Status copied = wait_for_copies(device_, deadline).in("restore: to the device");
  return status.ok() ? copied : status;
}

// A step that is still under way may be skipped: what the next one needs in either case is written, and the device
// takes.
void DeviceReplica::begin_step(const StepContext& step) {
  step_ = step.step;
  StepConstants constants;
  for (std::int32_t i = 0; i < kStepsUnderWay; ++i) {
    LossScale scale = last_scale_;
    scale.skipped_steps += i;
    const std::int64_t number = std::max<std::int64_t>(step.step + 1 - scale.skipped_steps, 1);
    const UpdateStep update{step.learning_rate, share_, number};
    constants[0][scale.choice()] = constants_of(optimizer_, update);
    constants[1][scale.choice()] = constants_of(without_decay(optimizer_), update);
  }
  std::memcpy(turns_[turn_of(step_)].host_constants.data(), &constants, sizeof(constants));
}

void DeviceReplica::begin_updates() {
  const Turn& turn = turns_[turn_of(step_)];
  device_.compute().copy_to_device(turn.host_constants, turn.constants);
  if (is_loss_scaled()) device_.compute().look_for_overflow(arenas_.rounded_gradients, *loss_scale());
}

void DeviceReplica::update(Range range) {
  const auto& constants = *reinterpret_cast<const StepConstants*>(turns_[turn_of(step_)].constants.data());
  for_each_decay_part(undecayed_, range, [&](Range part, bool decays) {
    const auto of = [part](auto memory) { return memory.empty() ? memory : slice(memory, part); };
    DeviceOptimizerState remembered = state_;
    for (std::span<float>& memory : remembered.memories) memory = of(memory);
    device_.compute().update(optimizer_, {.weights = slice(arenas_.weights, part),
                                          .gradient = slice(arenas_.model_gradients(), part),
                                          .state = remembered,
                                          .constants = constants[decays ? 0 : 1].data(),
                                          .rounded_weights = of(arenas_.rounded_weights),
                                          .loss_scale = loss_scale()});
  });
}

void DeviceReplica::end_updates() {
  if (!is_loss_scaled()) return;
  device_.compute().end_step(*loss_scale());
  device_.compute().copy_to_host(loss_scale_, turns_[turn_of(step_)].loss_scale);
}

void DeviceReplica::finish_step(SyncStats& stats) {
  const Turn& turn = turns_[turn_of(finished_++)];
  if (!is_loss_scaled()) return;
  const LossScale before = last_scale_;
  std::memcpy(&last_scale_, turn.loss_scale.data(), sizeof(last_scale_));
  stats.loss_scale = static_cast<std::int64_t>(before.factor);
  stats.skipped = last_scale_.skipped_steps - before.skipped_steps;
}

}  // namespace syncopate
