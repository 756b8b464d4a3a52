#include "allreduce/compression/reductions.h"
#include "allreduce/compression/stopwatch.h"
#include "common/codec/error_feedback.h"
#include "common/hash.h"

namespace syncopate::allreduce {
namespace {

class DrawnSum final : public CompressedReduction {
 public:
  // `values` has room for what is sent of the whole arena, and so for that of any bucket.
  DrawnSum(const ReductionParts& parts, std::span<float> values)
      : collective_(parts.collective),
        clock_(parts.clock),
        seed_(parts.seed),
        layout_(parts.layout),
        feedback_(parts.codec, parts.layout.size(), tensor_ranges(parts.layout)),
        values_(values) {}

  Result<Duration> reduce(Range bucket, std::span<float> gradients, const ReductionStep& step,
                          TimePoint deadline) override {
    const std::uint64_t key = key_of(bucket, step.number);
    const std::size_t bytes = feedback_.codec().encoded_size(bucket.size(), bucket.begin);
    const std::span<float> values = values_.first(bytes / sizeof(float));
    Stopwatch stopwatch(clock_);
    stopwatch.time(Processing::kEncode, gradients.size_bytes(),
                   [&] { feedback_.encode(bucket, gradients, key, std::as_writable_bytes(values)); });
    SYNCOPATE_RETURN_IF_ERROR(collective_.all_reduce(values, deadline));
    Status decoded;
    stopwatch.time(Processing::kDecode, gradients.size_bytes(),
                   [&] { decoded = feedback_.codec().decode(std::as_bytes(values), key, gradients, bucket.begin); });
    if (!decoded.ok()) return decoded;
    return stopwatch.total();
  }

  std::vector<ReductionMemory> memories() override {
    return {residual_memory("residual", layout_, feedback_.residual())};
  }

 private:
  std::uint64_t key_of(Range bucket, std::int64_t step) const {
    Fnv key;
    key.add(seed_);
    key.add(static_cast<std::uint64_t>(step));
    key.add(bucket.begin);
    return key.value();
  }

  Collective& collective_;
  const Clock& clock_;
  const std::uint64_t seed_;
  const ParamLayout layout_;
  ErrorFeedback feedback_;
  std::span<float> values_;  // in the collective's memory
};

}  // namespace

MadeReduction make_drawn_sum(const ReductionParts& parts) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::span<float> values,
                             parts.collective.allocate(kept_elements(parts.codec.ratio, parts.layout.size())));
  return std::unique_ptr<CompressedReduction>(std::make_unique<DrawnSum>(parts, values));
}

}  // namespace syncopate::allreduce
