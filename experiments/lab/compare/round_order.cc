#include "experiments/lab/compare/round_order.h"

#include <numeric>
#include <utility>

#include "common/random.h"

namespace syncopate::experiments {
namespace {

constexpr std::uint64_t kStreamOfRounds = 0x726F756E6473;  // separate from other draws from the seed

}  // namespace

std::vector<std::size_t> round_order(std::size_t rows, std::uint64_t seed, std::size_t round) {
  std::vector<std::size_t> order(rows);
  std::iota(order.begin(), order.end(), std::size_t{0});
  Random random(seed, kStreamOfRounds + round);
  for (std::size_t left = rows; left > 1; --left) std::swap(order[left - 1], order[random.below(left)]);
  return order;
}

}  // namespace syncopate::experiments
