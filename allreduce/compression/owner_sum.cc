#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "allreduce/compression/reductions.h"
#include "allreduce/compression/stopwatch.h"
#include "common/codec/error_feedback.h"
#include "common/hash.h"
#include "common/tensor_ranges.h"

namespace syncopate::allreduce {
namespace {

// Each encoded part begins on a cache line, and has a chunk that is not full.
constexpr std::size_t kRoomBetweenParts = 128;
// The most that a tensor which begins in a part adds to it: a scale, and a word that is not full.
constexpr std::size_t kRoomOfTensor = 8;

class OwnerSum final : public CompressedReduction {
 public:
  // `parts_memory` has room for the encoded parts of the whole arena, and so for those of any bucket.
  OwnerSum(const ReductionParts& parts, std::span<std::byte> parts_memory, std::span<std::byte> sum_memory)
      : collective_(parts.collective),
        clock_(parts.clock),
        seed_(parts.seed),
        layout_(parts.layout),
        codec_(parts.codec, tensor_ranges(parts.layout)),
        parts_memory_(parts_memory),
        sum_memory_(sum_memory),
        size_(static_cast<std::size_t>(parts.collective.size())),
        rank_(static_cast<std::size_t>(parts.collective.rank())),
        given_(size_),
        taken_(size_) {
    if (!needs_error_feedback(parts.codec)) return;
    lost_of_gradients_.emplace(parts.codec, parts.layout.size(), codec_.tensors());
    lost_of_sums_.emplace(parts.codec, parts.layout.size(), codec_.tensors());
  }

  Result<Duration> reduce(Range bucket, std::span<float> gradients, const ReductionStep& step,
                          TimePoint deadline) override {
    const std::vector<Range> cut = parts_of(bucket);
    Stopwatch stopwatch(clock_);
    stopwatch.time(Processing::kEncode, gradients.size_bytes(),
                   [&] { encode_parts(bucket, cut, gradients, step.number); });
    SYNCOPATE_RETURN_IF_ERROR(collective_.all_to_all(given_, taken_, deadline));

    const std::span<std::byte> own = sum_memory_.first(codec_.encoded_size(cut[rank_].size(), cut[rank_].begin));
    Status status;
    const std::size_t own_bytes = cut[rank_].size() * sizeof(float);
    stopwatch.time(Processing::kDecode, cut.size() * own_bytes,
                   [&] { status = sum_own_part(cut[rank_], step.number, own); });
    clock_.processed(Processing::kEncode, own_bytes);
    if (!status.ok()) return status;
    std::ranges::fill(given_, Bytes(own));
    SYNCOPATE_RETURN_IF_ERROR(collective_.all_to_all(given_, taken_, deadline));

    stopwatch.time(Processing::kDecode, gradients.size_bytes(), [&] { status = decode_sums(bucket, cut, gradients); });
    if (!status.ok()) return status;
    return stopwatch.total();
  }

  std::vector<ReductionMemory> memories() override {
    if (!lost_of_gradients_) return {};
    return {residual_memory("residual", layout_, lost_of_gradients_->residual()),
            residual_memory("residual.of_sums", layout_, lost_of_sums_->residual())};
  }

 private:
  enum class Stage : std::uint64_t { kGradients, kSum };

  // By owner, of the arena.
  std::vector<Range> parts_of(Range bucket) const {
    std::vector<Range> parts = balanced_ranges(bucket.size(), size_);
    for (Range& part : parts) part = {bucket.begin + part.begin, bucket.begin + part.end};
    return parts;
  }
  static std::span<float> part_of(std::span<float> bucket_values, Range bucket, Range part) {
    return bucket_values.subspan(part.begin - bucket.begin, part.size());
  }

  // Each rank rounds by chances of its own: those of all together would not come to nothing.
  std::uint64_t key_of(Range part, std::int64_t step, Stage stage) const {
    Fnv key;
    key.add(seed_);
    key.add(static_cast<std::uint64_t>(step));
    key.add(part.begin);
    key.add(static_cast<std::uint64_t>(stage));
    key.add(rank_);
    return key.value();
  }

  void encode(std::optional<ErrorFeedback>& lost, Range range, std::span<const float> values, std::uint64_t key,
              std::span<std::byte> out) {
    if (lost) {
      lost->encode(range, values, key, out);
    } else {
      codec_.encode(values, key, out, range.begin);
    }
  }

  void encode_parts(Range bucket, const std::vector<Range>& cut, std::span<float> gradients, std::int64_t step) {
    std::size_t begin = 0;
    for (std::size_t owner = 0; owner < size_; ++owner) {
      const Range part = cut[owner];
      const std::size_t bytes = codec_.encoded_size(part.size(), part.begin);
      const std::span<std::byte> out = parts_memory_.subspan(begin, bytes);
      encode(lost_of_gradients_, part, part_of(gradients, bucket, part), key_of(part, step, Stage::kGradients), out);
      given_[owner] = out;
      begin = (begin + bytes + 63) / 64 * 64;
    }
  }

  // What has come decodes without its key: these codecs need one to encode alone.
  Status sum_own_part(Range part, std::int64_t step, std::span<std::byte> out) {
    sum_.resize(part.size());
    for (std::size_t rank = 0; rank < size_; ++rank) {
      const Status added = rank == 0 ? codec_.decode(taken_[rank], 0, sum_, part.begin)
                                     : codec_.add_decoded(taken_[rank], 0, sum_, part.begin);
      if (!added.ok()) return added.in(fmt::format("gradients of rank {}", rank));
    }
    encode(lost_of_sums_, part, sum_, key_of(part, step, Stage::kSum), out);
    return {};
  }

  Status decode_sums(Range bucket, const std::vector<Range>& cut, std::span<float> gradients) const {
    for (std::size_t rank = 0; rank < size_; ++rank) {
      const Status decoded = codec_.decode(taken_[rank], 0, part_of(gradients, bucket, cut[rank]), cut[rank].begin);
      if (!decoded.ok()) return decoded.in(fmt::format("sum of rank {}", rank));
    }
    return {};
  }

  Collective& collective_;
  const Clock& clock_;
  const std::uint64_t seed_;
  const ParamLayout layout_;
  Codec codec_;
  std::optional<ErrorFeedback> lost_of_gradients_;
  std::optional<ErrorFeedback> lost_of_sums_;  // of the parts that this rank owns
  // In the collective's memory, by turns: who reads one of them has let go of it before the other has gone out.
  std::span<std::byte> parts_memory_;
  std::span<std::byte> sum_memory_;
  std::vector<float> sum_;
  const std::size_t size_;
  const std::size_t rank_;
  std::vector<Bytes> given_;  // by rank, as are the next
  std::vector<Bytes> taken_;
};

Result<std::span<std::byte>> allocate_bytes(Collective& collective, std::size_t bytes) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::span<float> floats,
                             collective.allocate((bytes + sizeof(float) - 1) / sizeof(float)));
  return std::as_writable_bytes(floats);
}

}  // namespace

MadeReduction make_owner_sum(const ReductionParts& parts) {
  const Codec codec(parts.codec, tensor_ranges(parts.layout));
  const auto ranks = static_cast<std::size_t>(parts.collective.size());
  const std::size_t part = balanced_ranges(parts.layout.size(), ranks).front().size();
  const std::size_t parts_bytes = codec.encoded_size(parts.layout.size()) + ranks * kRoomBetweenParts;
  SYNCOPATE_ASSIGN_OR_RETURN(const std::span<std::byte> parts_memory, allocate_bytes(parts.collective, parts_bytes));
  // Holds the sum of any part of any bucket, however many tensors begin there.
  const std::size_t sum_bytes =
      Codec(parts.codec).encoded_size(part) + codec.tensors().size() * kRoomOfTensor + kRoomBetweenParts;
  SYNCOPATE_ASSIGN_OR_RETURN(const std::span<std::byte> sum_memory, allocate_bytes(parts.collective, sum_bytes));
  return std::unique_ptr<CompressedReduction>(std::make_unique<OwnerSum>(parts, parts_memory, sum_memory));
}

}  // namespace syncopate::allreduce
