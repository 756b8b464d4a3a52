#include "allreduce/collective/rank_order_sum.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/random.h"

namespace syncopate::allreduce {
namespace {

// Numbers of very different sizes: their sum depends on the order. (Powers of two, so that the products are exact.)
std::vector<std::vector<float>> drawn_parts(std::size_t parts, std::size_t count) {
  Random random(parts * 1000 + count);
  std::vector<std::vector<float>> drawn(parts, std::vector<float>(count));
  for (auto& part : drawn) {
    for (float& value : part) {
      value = static_cast<float>(random.below(1000)) * (random.below(2) == 0 ? 0x1p-13f : 0x1p13f);
    }
  }
  return drawn;
}

std::vector<float> summed_in_order(const std::vector<std::vector<float>>& parts) {
  std::vector<float> sum = parts[0];
  for (std::size_t p = 1; p < parts.size(); ++p) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += parts[p][i];
  }
  return sum;
}

TEST(RankOrderSum, PutsTheSumInTheOrderOfBuffersIntoEachOfThem) {
  for (std::size_t parts = 1; parts <= 12; ++parts) {
    for (std::size_t count : {0u, 1u, 15u, 16u, 1024u, 2500u}) {
      std::vector<std::vector<float>> buffers = drawn_parts(parts, count);
      const std::vector<float> expected = summed_in_order(buffers);
      std::vector<float*> pointers;
      for (auto& buffer : buffers) pointers.push_back(buffer.data());
      sum_everywhere(pointers, count);
      for (const auto& buffer : buffers) ASSERT_EQ(buffer, expected) << parts << " parts of " << count;
    }
  }
}

TEST(RankOrderSum, LeavesThePartsAloneWhereTheSumGoesElsewhere) {
  for (std::size_t parts = 1; parts <= 12; ++parts) {
    for (std::size_t count : {0u, 1u, 17u, 2048u}) {
      const std::vector<std::vector<float>> buffers = drawn_parts(parts, count);
      std::vector<const float*> pointers;
      for (const auto& buffer : buffers) pointers.push_back(buffer.data());
      std::vector<float> sum(count, -1.0f);
      sum_into(sum.data(), pointers, count);
      ASSERT_EQ(sum, summed_in_order(buffers)) << parts << " parts of " << count;
      ASSERT_EQ(buffers, drawn_parts(parts, count));
    }
  }
}

TEST(RankOrderSum, GoesIntoTheFirstPartWhereThatIsAskedFor) {
  for (std::size_t parts = 1; parts <= 12; ++parts) {
    for (std::size_t count : {0u, 1u, 17u, 2048u}) {
      std::vector<std::vector<float>> buffers = drawn_parts(parts, count);
      const std::vector<float> expected = summed_in_order(buffers);
      std::vector<const float*> pointers;
      for (const auto& buffer : buffers) pointers.push_back(buffer.data());
      sum_into(buffers[0].data(), pointers, count);
      ASSERT_EQ(buffers[0], expected) << parts << " parts of " << count;
    }
  }
}

}  // namespace
}  // namespace syncopate::allreduce
