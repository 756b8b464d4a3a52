#include "allreduce/collective/two_level_collective.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "allreduce/collective/rank_order_sum.h"
#include "allreduce/schedule/algorithms.h"

namespace syncopate::allreduce {
namespace {

// The sum of one chunk over the buffers of a host's ranks, made in `sum`.
class HostSum final : public PartwiseSum {
 public:
  // `chunks`: where the chunk begins in each rank's buffer.
  HostSum(std::span<float* const> chunks, std::span<float> sum) : chunks_(chunks), sum_(sum), parts_(chunks.size()) {}

  void contribute(Range range) override {
    std::ranges::transform(chunks_, parts_.begin(), [&](const float* chunk) { return chunk + range.begin; });
    sum_into(sum_.data() + range.begin, parts_, range.size());
  }
  void take_sum(Range range) override {
    for (float* chunk : chunks_) std::ranges::copy(slice(sum_, range), chunk + range.begin);
  }

 private:
  const std::span<float* const> chunks_;
  const std::span<float> sum_;
  std::vector<const float*> parts_;
};

class TwoLevelCollective final : public Collective {
 public:
  TwoLevelCollective(DirectCollective& inside, std::unique_ptr<ScheduleCollective> all)
      : inside_(inside), owners_(owners_on_each_host(all->ranks_by_host())), all_(std::move(all)) {}

  int rank() const override { return all_->rank(); }
  int size() const override { return all_->size(); }
  const char* name() const override { return all_->name(); }

  Result<std::span<float>> allocate(std::size_t elements) override { return inside_.allocate(elements); }

  Status all_reduce(std::span<float> buffer, TimePoint deadline) override {
    if (all_->kind_for(buffer.size_bytes()) != ScheduleKind::kHierarchical) {
      return over_the_wire(all_->all_reduce(buffer, deadline));
    }
    bool failed_across = false;
    const auto sum_across_hosts = [&](std::span<float* const> chunks, std::size_t count) -> Status {
      SYNCOPATE_RETURN_IF_ERROR(make_room(count));
      HostSum sum(chunks, sums_.first(count));
      Status status = all_->all_reduce_across_hosts(sums_.first(count), sum, deadline);
      failed_across = !status.ok();
      return status;
    };
    Status status = inside_.all_reduce_by_parts(buffer, owners_, sum_across_hosts, deadline);
    return waited_for(failed_across ? all_->missed() : inside_.missed(), std::move(status));
  }

  Status broadcast(std::span<float> buffer, int root, TimePoint deadline) override {
    return over_the_wire(all_->broadcast(buffer, root, deadline));
  }
  Status barrier(TimePoint deadline) override { return over_the_wire(all_->barrier(deadline)); }
  Status reduce_pair(std::span<float> buffer, int partner, TimePoint deadline) override {
    return over_the_wire(all_->reduce_pair(buffer, partner, deadline));
  }
  Status all_to_all(std::span<const Bytes> given, std::span<Bytes> taken, TimePoint deadline) override {
    return over_the_wire(all_->all_to_all(given, taken, deadline));
  }

  int waiting_for() const override {
    const int across = all_->waiting_for();
    return across >= 0 ? across : inside_.waiting_for();
  }
  void interrupt() override {
    inside_.interrupt();
    all_->interrupt();
  }
  TransportCounters counters() const override {
    TransportCounters counters = all_->counters();
    const TransportCounters inside = inside_.counters();
    counters.payload_bytes_out += inside.payload_bytes_out;
    counters.payload_bytes_in += inside.payload_bytes_in;
    counters.dropped += inside.dropped;
    counters.rejected += inside.rejected;
    return counters;
  }

 private:
  Status over_the_wire(Status status) { return waited_for(all_->missed(), std::move(status)); }

  // The sums lie in the transport's memory, from which they are sent.
  Status make_room(std::size_t count) {
    if (count <= sums_.size()) return Status();
    SYNCOPATE_ASSIGN_OR_RETURN(sums_, all_->allocate(std::bit_ceil(count)));
    return Status();
  }

  DirectCollective& inside_;
  const std::size_t owners_;  // on each host
  const std::unique_ptr<ScheduleCollective> all_;
  std::span<float> sums_;  // of this rank's chunk
};

}  // namespace

std::unique_ptr<Collective> make_two_level_collective(DirectCollective& inside,
                                                      std::unique_ptr<ScheduleCollective> all) {
  return std::make_unique<TwoLevelCollective>(inside, std::move(all));
}

}  // namespace syncopate::allreduce
