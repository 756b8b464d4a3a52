#include "allreduce/strategy/gossip_pairs.h"

#include <numeric>
#include <utility>

#include "common/random.h"

namespace syncopate::allreduce {
namespace {

constexpr std::uint64_t kStream = 0x676F73736970ull << 16;  // apart from those of weights and data

}  // namespace

std::vector<int> gossip_pairs(std::uint64_t seed, std::int64_t round, int size) {
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<int> partners = ranks;
  Random random(seed, kStream + static_cast<std::uint64_t>(round));
  for (std::size_t left = ranks.size(); left > 1; --left) std::swap(ranks[left - 1], ranks[random.below(left)]);
  for (std::size_t i = 1; i < ranks.size(); i += 2) {
    partners[static_cast<std::size_t>(ranks[i - 1])] = ranks[i];
    partners[static_cast<std::size_t>(ranks[i])] = ranks[i - 1];
  }
  return partners;
}

}  // namespace syncopate::allreduce
