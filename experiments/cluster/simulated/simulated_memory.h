// SimulatedMemory: the memory that workers of one simulated host share. Whoever works on another's buffer reads it over
// the host's link (--inside), which all of the host share, and writes it so.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "allreduce/collective/direct_collective.h"
#include "allreduce/collective/schedule_collective.h"

namespace syncopate::experiments {

// The arenas of a group's ranks, by rank and in the order in which they were allocated.
using ArenasOfRanks = std::vector<std::vector<std::span<float>>>;

class SimulatedMemory final : public allreduce::DirectCollective {
 public:
  // `transport` connects the ranks of the group, which share `arenas`; all are of one host. In what it says of waits
  // they have the numbers `called`. The clock outlives it, and is told what is summed.
  SimulatedMemory(std::unique_ptr<Transport> transport, std::shared_ptr<ArenasOfRanks> arenas, const Clock& clock,
                  std::vector<int> called);

  int rank() const override { return messages_->rank(); }
  int size() const override { return messages_->size(); }
  const char* name() const override { return "direct"; }
  bool works_in_memory() const override { return true; }

  Result<std::span<float>> allocate(std::size_t elements) override;
  Result<std::span<float>> buffer_of(int rank, std::span<const float> buffer) override;

  // Each owner reads its part of all others' buffers and adds as many. What `work` writes into the first rank's buffer
  // is priced alone: whoever sums on hosts writes no other.
  Status all_reduce_by_parts(std::span<float> buffer, std::size_t owners, const PartFunction& work,
                             TimePoint deadline) override;

  Status all_reduce(std::span<float> buffer, TimePoint deadline) override {
    return messages_->all_reduce(buffer, deadline);
  }
  Status broadcast(std::span<float> buffer, int root, TimePoint deadline) override {
    return messages_->broadcast(buffer, root, deadline);
  }
  Status barrier(TimePoint deadline) override { return messages_->barrier(deadline); }
  Status reduce_pair(std::span<float> buffer, int partner, TimePoint deadline) override {
    return messages_->reduce_pair(buffer, partner, deadline);
  }
  Status all_to_all(std::span<const allreduce::Bytes> given, std::span<allreduce::Bytes> taken,
                    TimePoint deadline) override {
    return messages_->all_to_all(given, taken, deadline);
  }
  int waiting_for() const override;
  void interrupt() override { messages_->interrupt(); }
  TransportCounters counters() const override { return messages_->counters(); }

 private:
  // Gives part r of the buffer to owner r, and takes as much of each other's as this rank owns.
  Status read_parts(std::span<const float> buffer, const std::vector<Range>& parts, TimePoint deadline);
  Status write_to_first(std::span<const float> part, TimePoint deadline);

  const std::unique_ptr<Transport> transport_;
  const std::shared_ptr<ArenasOfRanks> arenas_;
  const Clock& clock_;
  const std::vector<int> called_;
  const std::unique_ptr<allreduce::ScheduleCollective> messages_;
};

}  // namespace syncopate::experiments
