#include "allreduce/compression/reduction_history.h"

#include <fmt/format.h>

#include <algorithm>

namespace syncopate::allreduce {

ReductionHistory::ReductionHistory(std::vector<ReductionMemory> memories, int worker)
    : memories_(std::move(memories)), worker_(worker) {}

void ReductionHistory::keep() {
  make_room();
  for (std::size_t i = 0; i < memories_.size(); ++i) {
    std::ranges::copy(memories_[i].values, kept_[i].span().begin());
  }
}

void ReductionHistory::save(TrainingState& state, bool step_failed) const {
  for (std::size_t i = 0; i < memories_.size(); ++i) {
    const ReductionMemory& memory = memories_[i];
    const std::span<const float> before = step_failed ? kept_[i].span() : std::span<const float>(memory.values);
    state.put(name_of(memory, false), memory.begin, before);
    if (step_failed && !memory.alike) state.put(name_of(memory, true), memory.begin, memory.values);
  }
}

void ReductionHistory::restore(const TrainingState& state) {
  make_room();
  for (std::size_t i = 0; i < memories_.size(); ++i) {
    const ReductionMemory& memory = memories_[i];
    const Range range{memory.begin, memory.begin + memory.values.size()};
    const auto read = [&](bool of_failed_step, std::span<float> to) {
      const std::string name = name_of(memory, of_failed_step);
      if (!state.covers(name, range) || !state.read(name, range, to).ok()) std::ranges::fill(to, 0.0f);
    };
    read(false, memory.values);
    if (!memory.alike) read(true, kept_[i].span());
  }
}

void ReductionHistory::count_failed_step() {
  for (std::size_t i = 0; i < memories_.size(); ++i) {
    if (!memories_[i].alike) std::ranges::copy(kept_[i].span(), memories_[i].values.begin());
  }
}

void ReductionHistory::make_room() {
  for (std::size_t i = kept_.size(); i < memories_.size(); ++i) kept_.emplace_back(memories_[i].values.size());
}

Status ReductionHistory::transfer(StateTransfer& transfer) {
  for (const ReductionMemory& memory : memories_) {
    if (memory.alike) SYNCOPATE_RETURN_IF_ERROR(transfer.give(memory.values).in(memory.name));
  }
  return Status();
}

std::string ReductionHistory::name_of(const ReductionMemory& memory, bool of_failed_step) const {
  if (memory.alike) return memory.name;
  return fmt::format("{}{}.worker{}", memory.name, of_failed_step ? ".of_failed_step" : "", worker_);
}

}  // namespace syncopate::allreduce
