#include "ps/server/weights_pool.h"

#include <gtest/gtest.h>

#include <deque>
#include <optional>

#include "common/optimizer/optimizer.h"
#include "common/os/aligned_buffer.h"
#include "ps/server/chunk_weights.h"

namespace syncopate::ps {
namespace {

// A transport's part: sends begin when weights are on loan, and end when the test says so.
class WeightsPoolTest : public testing::Test {
 protected:
  WeightsPool pool{[this](std::size_t elements) -> Result<std::span<float>> {
                     if (memory.size() == limit) return Status::resource_exhausted("memory is full");
                     return memory.emplace_back(elements).span();
                   },
                   [this](const PendingSends& pending) {
                     ++settled;
                     pending.counter()->store(0);
                     return Status();
                   }};

  ChunkWeights make_chunk(int workers, std::size_t elements = 32) {
    ChunkWeights chunk(workers, {.kind = OptimizerKind::kSgd}, compensation, pool);
    EXPECT_TRUE(chunk.create(std::vector<float>(elements, 0.0f)).ok());
    return chunk;
  }

  struct Loan {
    std::span<const float> weights;
    PendingSends* pending;
    void sent() const { pending->counter()->fetch_sub(1); }
  };
  static Loan send_to(ChunkWeights& chunk, int worker) {
    PendingSends* const pending = chunk.lend(worker);
    pending->counter()->fetch_add(1);
    return {chunk.current(), pending};
  }

  // Adds one to every weight.
  static Status update(ChunkWeights& chunk) {
    const std::vector<float> gradient(chunk.size(), -1.0f);
    GradientSum sum;
    sum.add(gradient, 0);
    return chunk.update(sum, 1.0f);
  }

  DelayCompensation compensation;
  std::deque<AlignedBuffer> memory;
  std::size_t limit = 100;
  int settled = 0;
};

TEST_F(WeightsPoolTest, AnUpdateIsInPlaceWhileNobodyReads) {
  ChunkWeights chunk = make_chunk(2);
  ASSERT_TRUE(update(chunk).ok());
  send_to(chunk, 0).sent();
  ASSERT_TRUE(update(chunk).ok());
  EXPECT_EQ(chunk.current()[31], 2);
  EXPECT_EQ(pool.buffers(), 1u);
}

TEST_F(WeightsPoolTest, WeightsThatAreBeingSentAreLeftAlone) {
  ChunkWeights chunk = make_chunk(2);
  ASSERT_TRUE(update(chunk).ok());
  const Loan loan = send_to(chunk, 0);
  ASSERT_TRUE(update(chunk).ok());
  EXPECT_EQ(chunk.copies(), 1);
  ASSERT_TRUE(update(chunk).ok());  // nobody reads the new buffer
  EXPECT_EQ(chunk.copies(), 1);
  EXPECT_EQ(loan.weights[0], 1);
  EXPECT_EQ(chunk.current()[0], 3);
}

TEST_F(WeightsPoolTest, AChunkTakesABufferThatAnotherGaveUpOnceItHasBeenSent) {
  ChunkWeights first = make_chunk(2), second = make_chunk(2);
  const Loan loan = send_to(first, 0);
  ASSERT_TRUE(update(first).ok());
  loan.sent();
  const Loan other = send_to(second, 0);
  ASSERT_TRUE(update(second).ok());
  EXPECT_EQ(second.current().data(), loan.weights.data());
  EXPECT_EQ(pool.buffers(), 3u);
  EXPECT_EQ(other.weights[0], 0);
  EXPECT_EQ(second.current()[0], 1);
}

TEST_F(WeightsPoolTest, ASmallChunkLeavesTheBuffersOfLargeOnesToThem) {
  ChunkWeights large = make_chunk(2, 4096), small = make_chunk(2, 32);
  const Loan loan = send_to(large, 0);
  ASSERT_TRUE(update(large).ok());
  loan.sent();
  send_to(small, 0);
  ASSERT_TRUE(update(small).ok());
  send_to(large, 0);
  ASSERT_TRUE(update(large).ok());
  EXPECT_EQ(large.current().data(), loan.weights.data());
}

TEST_F(WeightsPoolTest, AChunkNeedsOneBufferMoreThanWorkersAndNoMore) {
  ChunkWeights chunk = make_chunk(3);
  std::vector<std::optional<Loan>> loans(3);
  for (int round = 0; round < 20; ++round) {
    std::optional<Loan>& loan = loans[static_cast<std::size_t>(round % 3)];
    if (loan) {
      EXPECT_EQ(loan->weights[0], static_cast<float>(round - 3));
      loan->sent();
      chunk.returned(round % 3);
    }
    loan = send_to(chunk, round % 3);
    ASSERT_TRUE(update(chunk).ok());
  }
  EXPECT_EQ(pool.buffers(), 4u);
}

TEST_F(WeightsPoolTest, AnUpdateWaitsForTheNewsRatherThanCopyWhenAllReadersAreKnownToBeDone) {
  ChunkWeights chunk = make_chunk(2);
  send_to(chunk, 0), send_to(chunk, 1);
  chunk.returned(0), chunk.returned(1);
  ASSERT_TRUE(update(chunk).ok());
  EXPECT_EQ(settled, 1);
  EXPECT_EQ(chunk.copies(), 0);
}

// Delay compensation: what a worker was given outlives its sending.
TEST_F(WeightsPoolTest, WeightsThatAWorkerWasGivenAreKeptUntilItsGradientComesAndNoLonger) {
  compensation.lambda = 1;
  ChunkWeights chunk = make_chunk(2);
  const Loan loan = send_to(chunk, 0);
  loan.sent();
  chunk.returned(0);
  ASSERT_TRUE(update(chunk).ok());
  ASSERT_TRUE(update(chunk).ok());
  EXPECT_EQ(loan.weights[0], 0);
  EXPECT_EQ(chunk.copies(), 1);
  const std::vector<float> gradient(chunk.size(), 1.0f);
  // 1 + 1 · 1 · (2 - 0) = 3
  ASSERT_TRUE(chunk.update({gradient, 0, 0}, 1.0f).ok());
  EXPECT_EQ(chunk.current()[0], -1);
  EXPECT_EQ(chunk.copies(), 1);
  send_to(chunk, 1);
  ASSERT_TRUE(update(chunk).ok());
  EXPECT_EQ(chunk.current().data(), loan.weights.data());  // free again
  EXPECT_EQ(pool.buffers(), 2u);
}

TEST_F(WeightsPoolTest, NothingIsKeptForAWorkerThatIsGone) {
  compensation.lambda = 1;
  ChunkWeights chunk = make_chunk(2);
  send_to(chunk, 0).sent();
  chunk.returned(0);
  chunk.release(0);
  ASSERT_TRUE(update(chunk).ok());
  EXPECT_EQ(pool.buffers(), 1u);
}

TEST_F(WeightsPoolTest, AnUpdateTellsWhenMemoryIsFull) {
  limit = 1;
  ASSERT_TRUE(pool.reserve(32).ok());
  ChunkWeights chunk = make_chunk(1);
  send_to(chunk, 0);
  EXPECT_EQ(update(chunk).code(), Code::kResourceExhausted);
  EXPECT_EQ(chunk.current()[0], 0);
}

}  // namespace
}  // namespace syncopate::ps
