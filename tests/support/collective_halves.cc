#include "tests/support/collective_halves.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "common/random.h"
#include "tests/support/cluster.h"

namespace syncopate::testing_support {
namespace {

// Values of very different sizes, so that sums depend on the order.
void draw(int rank, int round, std::span<float> values) {
  Random random(static_cast<std::uint64_t>(rank) * 7919 + static_cast<std::uint64_t>(round));
  for (float& value : values) {
    value = static_cast<float>(random.below(100000)) * (random.below(2) == 0 ? 0x1p-16f : 0x1p16f);
  }
}

}  // namespace

void expect_sums_by_halves(allreduce::Collective& collective, std::size_t length) {
  Result<std::span<float>> buffer = collective.allocate(length);
  ASSERT_TRUE(buffer.ok());
  for (int round = 0; round < 3; ++round) {
    draw(collective.rank(), round, *buffer);
    const std::int64_t before = collective.counters().payload_bytes_out;
    ASSERT_TRUE(collective.all_reduce(*buffer, soon()).ok());
    const std::int64_t whole = collective.counters().payload_bytes_out - before;
    const std::vector<float> expected(buffer->begin(), buffer->end());

    draw(collective.rank(), round, *buffer);
    ASSERT_TRUE(collective.reduce_scatter(*buffer, soon()).ok());
    const std::int64_t first = collective.counters().payload_bytes_out - before - whole;
    const Range own = collective.own_part(length);
    for (std::size_t i = 0; i < length; ++i) {
      if (i < own.begin || i >= own.end) {
        (*buffer)[i] = -1;  // what does not matter
      } else {
        ASSERT_EQ((*buffer)[i], expected[i]) << "rank " << collective.rank() << ", element " << i;
      }
    }
    ASSERT_TRUE(collective.all_gather(*buffer, soon()).ok());
    for (std::size_t i = 0; i < length; ++i) ASSERT_EQ((*buffer)[i], expected[i]) << "element " << i;
    const std::int64_t second = collective.counters().payload_bytes_out - before - whole - first;
    if (collective.size() > 1) {
      // Parts of a rank differ in size by their alignment.
      EXPECT_NEAR(static_cast<double>(first + second), static_cast<double>(whole), 2.0 * 64 * collective.size());
    }
  }
}

}  // namespace syncopate::testing_support
