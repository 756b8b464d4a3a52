#include "experiments/cluster/simulated/simulated_memory.h"

#include <utility>

#include "common/param_layout.h"

namespace syncopate::experiments {

using allreduce::Bytes;

SimulatedMemory::SimulatedMemory(std::unique_ptr<Transport> transport, std::shared_ptr<ArenasOfRanks> arenas,
                                 const Clock& clock, std::vector<int> called)
    : transport_(std::move(transport)),
      arenas_(std::move(arenas)),
      clock_(clock),
      called_(std::move(called)),
      messages_(allreduce::make_schedule_collective(*transport_,
                                                    {.kind = allreduce::ScheduleKind::kDirect, .clock = &clock_})) {}

Result<std::span<float>> SimulatedMemory::allocate(std::size_t elements) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::span<float> arena, messages_->allocate(elements));
  (*arenas_)[static_cast<std::size_t>(rank())].push_back(arena);
  return arena;
}

Result<std::span<float>> SimulatedMemory::buffer_of(int rank, std::span<const float> buffer) {
  const std::vector<std::span<float>>& own = (*arenas_)[static_cast<std::size_t>(this->rank())];
  const std::vector<std::span<float>>& others = (*arenas_)[static_cast<std::size_t>(rank)];
  for (std::size_t number = 0; number < own.size() && number < others.size(); ++number) {
    const float* const begin = own[number].data();
    if (buffer.data() < begin || buffer.data() + buffer.size() > begin + own[number].size()) continue;
    return others[number].subspan(static_cast<std::size_t>(buffer.data() - begin), buffer.size());
  }
  return Status::invalid_argument("the buffer does not lie in memory from allocate()");
}

Status SimulatedMemory::all_reduce_by_parts(std::span<float> buffer, std::size_t owners, const PartFunction& work,
                                            TimePoint deadline) {
  std::vector<Range> parts = balanced_ranges(buffer.size(), owners);
  parts.resize(static_cast<std::size_t>(size()));
  SYNCOPATE_RETURN_IF_ERROR(read_parts(buffer, parts, deadline));
  const Range part = parts[static_cast<std::size_t>(rank())];
  std::vector<float*> places;
  for (int other = 0; other < size(); ++other) {
    SYNCOPATE_ASSIGN_OR_RETURN(const std::span<float> all_of_it, buffer_of(other, buffer));
    places.push_back(slice(all_of_it, part).data());
  }
  clock_.processed(Processing::kSum, (places.size() - 1) * part.size() * sizeof(float));
  SYNCOPATE_RETURN_IF_ERROR(work(places, part.size()));
  return write_to_first(slice(buffer, part), deadline);
}

Status SimulatedMemory::read_parts(std::span<const float> buffer, const std::vector<Range>& parts, TimePoint deadline) {
  std::vector<Bytes> given, taken(parts.size());
  for (const Range& part : parts) given.push_back(std::as_bytes(slice(buffer, part)));
  return messages_->all_to_all(given, taken, deadline);
}

Status SimulatedMemory::write_to_first(std::span<const float> part, TimePoint deadline) {
  const auto ranks = static_cast<std::size_t>(size());
  std::vector<Bytes> given(ranks), taken(ranks);
  given[0] = std::as_bytes(part);
  return messages_->all_to_all(given, taken, deadline);
}

int SimulatedMemory::waiting_for() const {
  const int rank = messages_->waiting_for();
  return rank < 0 ? -1 : called_[static_cast<std::size_t>(rank)];
}

}  // namespace syncopate::experiments
