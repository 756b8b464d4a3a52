#include "allreduce/agreement.h"

#include <fmt/format.h>

#include <array>

#include "common/hash.h"

namespace syncopate::allreduce {
namespace {

struct Part {
  const char* name;
  std::uint64_t CommonGround::*hash;
  const char* demand;
};

// A rank of another layout has other buckets, too: what explains the others comes first.
constexpr std::array kParts{
    Part{"collective", &CommonGround::collective, "all ranks must sum in the same way"},
    Part{"layout", &CommonGround::layout, "all replicas must train the same model"},
    Part{"buckets", &CommonGround::buckets, "all ranks must reduce the same buckets in the same order"},
};

// A float holds so many bits exactly, with room to spare.
constexpr std::size_t kPieceBits = 16;
constexpr std::size_t kPieces = 64 / kPieceBits;
constexpr std::size_t kFloats = kPieces * kParts.size();

void write(const CommonGround& ground, std::span<float> place) {
  for (std::size_t part = 0; part < kParts.size(); ++part) {
    for (std::size_t piece = 0; piece < kPieces; ++piece) {
      const std::uint64_t bits = (ground.*kParts[part].hash >> (kPieceBits * piece)) & ((1u << kPieceBits) - 1);
      place[kPieces * part + piece] = static_cast<float>(bits);
    }
  }
}

CommonGround read(std::span<const float> place) {
  CommonGround ground;
  for (std::size_t part = 0; part < kParts.size(); ++part) {
    for (std::size_t piece = 0; piece < kPieces; ++piece) {
      ground.*kParts[part].hash |= static_cast<std::uint64_t>(place[kPieces * part + piece]) << (kPieceBits * piece);
    }
  }
  return ground;
}

}  // namespace

CommonGround common_ground_of(const ParamLayout& layout, std::span<const Range> buckets, const Collective& collective,
                              const CodecConfig& codec) {
  Fnv ranges;
  for (const Range& bucket : buckets) {
    ranges.add(bucket.begin);
    ranges.add(bucket.end);
  }
  Fnv how;
  how.add(collective.name());
  how.add(to_string(codec));
  return {.layout = layout.hash(), .buckets = ranges.value(), .collective = how.value()};
}

// Each rank writes what it has to its own place of a buffer that is zero elsewhere: the sum over all ranks shows
// everybody everything.
Status prove_agreement(Collective& collective, const CommonGround& own, TimePoint deadline) {
  const auto size = static_cast<std::size_t>(collective.size());
  const auto rank = static_cast<std::size_t>(collective.rank());
  Result<std::span<float>> all = collective.allocate(kFloats * size);
  if (!all.ok()) return all.status();
  write(own, all->subspan(kFloats * rank, kFloats));
  SYNCOPATE_RETURN_IF_ERROR(collective.all_reduce(*all, deadline));
  for (std::size_t other = 0; other < size; ++other) {
    const CommonGround theirs = read(all->subspan(kFloats * other, kFloats));
    for (const Part& part : kParts) {
      if (theirs.*part.hash == own.*part.hash) continue;
      return Status(Code::kInvalidArgument,
                    fmt::format("rank {} has {} {:016x}, rank {} has {:016x}: {}", other, part.name, theirs.*part.hash,
                                rank, own.*part.hash, part.demand));
    }
  }
  return Status();
}

}  // namespace syncopate::allreduce
