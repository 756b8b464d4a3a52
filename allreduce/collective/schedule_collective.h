// ScheduleCollective: runs pure schedules over a Transport.
#pragma once

#include <memory>

#include "allreduce/collective.h"
#include "allreduce/collective/schedule_player.h"
#include "allreduce/schedule/cost_model.h"
#include "allreduce/schedule/schedule.h"
#include "common/clock.h"
#include "common/trace/tracer.h"

namespace syncopate::allreduce {

struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::kRing;  // for all_reduce
  std::size_t segment_bytes = 0;            // the largest part; 0: as large as the schedule makes them
  RanksByHost ranks_by_host = {};           // empty means one host
  const Clock* clock = nullptr;             // told what is summed (Clock::processed), if set; outlives the collective
  Tracer* tracer = nullptr;                 // records parts, if set; outlives the collective
  SchedulePlayer* player = nullptr;         // carries out the operations of all ranks, if set; outlives the collective
  std::vector<int> called = {};             // in what is said of waits, the ranks' numbers; empty: their own
  int number = 0;                           // which of the collectives that one tracer records, the same on all ranks
};

// A sum whose buffer is filled and emptied part by part, while other parts are on their way. Both functions are called
// on the thread of the operation, once for each element of the buffer.
class PartwiseSum {
 public:
  virtual ~PartwiseSum() = default;
  // Writes this rank's contribution to these elements of the buffer.
  virtual void contribute(Range range) = 0;
  // These elements of the buffer are the sum of all contributions, and must stay so until the operation has returned.
  virtual void take_sum(Range range) = 0;
};

class ScheduleCollective : public Collective {
 public:
  // What an all_reduce by kHierarchical does between hosts: a ring of this rank and the ranks that own the same chunk
  // (owned_chunk) on the other hosts. `buffer` is that chunk; it lies in memory from allocate(), and what is in it
  // before does not matter. An operation of all ranks of the group, also of those that own no chunk; these give no
  // buffer.
  virtual Status all_reduce_across_hosts(std::span<float> buffer, PartwiseSum& sum, TimePoint deadline) = 0;

  // Leaves the sum over the ranks of this rank's host in their buffers, by a ring. An operation of all ranks of the
  // group; buffers of different hosts may differ in length.
  virtual Status all_reduce_inside_host(std::span<float> buffer, TimePoint deadline) = 0;

  // From now on all_reduce uses the schedule that is cheapest for the buffer's size (CostModel), and name() is "auto".
  // All ranks must call this with the same figures after the same operation.
  virtual void choose_by(const GroupLinks& links) = 0;

  // Returns the schedule by which all_reduce sums so many bytes.
  virtual ScheduleKind kind_for(std::size_t bytes) const = 0;
  // Returns which ranks share a host. Not empty.
  virtual const RanksByHost& ranks_by_host() const = 0;
};

// The transport must outlive the collective. The collective is named for its schedule. All ranks must give the same
// options.
std::unique_ptr<ScheduleCollective> make_schedule_collective(Transport& transport, const ScheduleOptions& options = {});

}  // namespace syncopate::allreduce
