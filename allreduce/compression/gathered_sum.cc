#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "allreduce/compression/reductions.h"
#include "allreduce/compression/stopwatch.h"
#include "common/codec/error_feedback.h"

namespace syncopate::allreduce {
namespace {

class GatheredSum final : public CompressedReduction {
 public:
  // Each of `memory` has room for what is sent of the whole arena, and so for that of any bucket.
  GatheredSum(const ReductionParts& parts, const std::array<std::span<std::byte>, 2>& memory)
      : collective_(parts.collective),
        clock_(parts.clock),
        layout_(parts.layout),
        feedback_(parts.codec, parts.layout.size(), tensor_ranges(parts.layout)),
        memory_(memory),
        given_(static_cast<std::size_t>(parts.collective.size())),
        taken_(given_.size()) {}

  Result<Duration> reduce(Range bucket, std::span<float> gradients, const ReductionStep& step,
                          TimePoint deadline) override {
    feedback_.begin_epoch(step.epoch);
    const std::span<std::byte> own = memory_[0].first(feedback_.codec().encoded_size(bucket.size(), bucket.begin));
    std::swap(memory_[0], memory_[1]);
    Stopwatch stopwatch(clock_);
    stopwatch.time(Processing::kEncode, gradients.size_bytes(), [&] { feedback_.encode(bucket, gradients, 0, own); });
    std::ranges::fill(given_, Bytes(own));
    SYNCOPATE_RETURN_IF_ERROR(collective_.all_to_all(given_, taken_, deadline));
    Status summed;
    stopwatch.time(Processing::kDecode, taken_.size() * gradients.size_bytes(),
                   [&] { summed = sum_taken(bucket, gradients); });
    if (!summed.ok()) return summed;
    return stopwatch.total();
  }

  std::vector<ReductionMemory> memories() override {
    std::vector<ReductionMemory> memories{residual_memory("residual", layout_, feedback_.residual())};
    if (!feedback_.velocity().empty()) {
      memories.push_back(residual_memory("velocity", layout_, feedback_.velocity()));
    }
    return memories;
  }

 private:
  Status sum_taken(Range bucket, std::span<float> gradients) const {
    const Codec& codec = feedback_.codec();
    for (std::size_t rank = 0; rank < taken_.size(); ++rank) {
      const Status added = rank == 0 ? codec.decode(taken_[rank], 0, gradients, bucket.begin)
                                     : codec.add_decoded(taken_[rank], 0, gradients, bucket.begin);
      if (!added.ok()) return added.in(fmt::format("gradients of rank {}", rank));
    }
    return {};
  }

  Collective& collective_;
  const Clock& clock_;
  const ParamLayout layout_;
  ErrorFeedback feedback_;
  // In the collective's memory, by turns: others may read one until the next operation begins.
  std::array<std::span<std::byte>, 2> memory_;
  std::vector<Bytes> given_;  // by rank, as are the next
  std::vector<Bytes> taken_;
};

}  // namespace

MadeReduction make_gathered_sum(const ReductionParts& parts) {
  const std::size_t bytes = Codec(parts.codec, tensor_ranges(parts.layout)).largest_size(parts.layout.size());
  std::array<std::span<std::byte>, 2> memory;
  for (std::span<std::byte>& each : memory) {
    SYNCOPATE_ASSIGN_OR_RETURN(const std::span<float> floats,
                               parts.collective.allocate((bytes + sizeof(float) - 1) / sizeof(float)));
    each = std::as_writable_bytes(floats);
  }
  return std::unique_ptr<CompressedReduction>(std::make_unique<GatheredSum>(parts, memory));
}

}  // namespace syncopate::allreduce
