#include "allreduce/strategy/agreement.h"

#include <fmt/format.h>

#include <array>

#include "allreduce/collective/shared_words.h"
#include "common/hash.h"

namespace syncopate::allreduce {
namespace {

struct Part {
  const char* name;
  std::uint64_t GroupAgreement::*hash;
  const char* demand;
};

// A rank of another layout has other buckets, too: what explains the others comes first.
constexpr std::array kParts{
    Part{"collective", &GroupAgreement::collective, "all ranks must sum in the same way"},
    Part{"layout", &GroupAgreement::layout, "all replicas must train the same model"},
    Part{"buckets", &GroupAgreement::buckets, "all ranks must reduce the same buckets in the same order"},
};

}  // namespace

GroupAgreement group_agreement_of(const ParamLayout& layout, std::span<const Range> buckets,
                                  const Collective& collective, const CodecConfig& codec) {
  Fnv ranges;
  for (const Range& bucket : buckets) {
    ranges.add(bucket.begin);
    ranges.add(bucket.end);
  }
  Fnv how;
  how.add(collective.name());
  how.add(hash_of(codec));
  return {.layout = layout.hash(), .buckets = ranges.value(), .collective = how.value()};
}

Status prove_agreement(Collective& collective, const GroupAgreement& own, TimePoint deadline) {
  const std::uint64_t words[] = {own.layout, own.buckets, own.collective};
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<std::vector<std::uint64_t>> all,
                             share_words(collective, words, deadline));
  for (std::size_t other = 0; other < all.size(); ++other) {
    const std::vector<std::uint64_t>& said = all[other];
    const GroupAgreement theirs{.layout = said[0], .buckets = said[1], .collective = said[2]};
    for (const Part& part : kParts) {
      if (theirs.*part.hash == own.*part.hash) continue;
      return Status::invalid_argument(fmt::format("rank {} has {} {:016x}, rank {} has {:016x}: {}", other, part.name,
                                                  theirs.*part.hash, collective.rank(), own.*part.hash, part.demand));
    }
  }
  return Status();
}

}  // namespace syncopate::allreduce
