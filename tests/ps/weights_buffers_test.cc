#include "ps/weights_buffers.h"

#include <gtest/gtest.h>

#include <deque>

#include "common/aligned_buffer.h"

namespace syncopate::ps {
namespace {

// A transport's part: sends begin when weights are lent, and end when the test says so.
class WeightsBuffersTest : public testing::Test {
 protected:
  void make(int workers) {
    buffers.emplace(
        workers,
        [this](std::size_t elements) -> Result<std::span<float>> {
          if (memory.size() == limit) return Status(Code::kResourceExhausted, "memory is full");
          return memory.emplace_back(elements).span();
        },
        [this](const PendingSends& pending) {
          ++settled;
          pending.counter()->store(0);
          return Status();
        });
    ASSERT_TRUE(buffers->create(4).ok());
  }

  WeightsBuffers::Loan send_to(int worker) {
    const WeightsBuffers::Loan loan = buffers->lend(worker);
    loan.pending->counter()->fetch_add(1);
    return loan;
  }
  static void sent(const WeightsBuffers::Loan& loan) { loan.pending->counter()->fetch_sub(1); }

  // Copies and adds one to the first weight, as an update would.
  WeightsBuffers::Update update() {
    const Result<WeightsBuffers::Update> update = buffers->begin_update();
    EXPECT_TRUE(update.ok());
    std::copy(update->from.begin(), update->from.end(), update->to.begin());
    update->to[0] += 1;
    return *update;
  }

  std::deque<AlignedBuffer> memory;
  std::size_t limit = 100;
  int settled = 0;
  std::optional<WeightsBuffers> buffers;
};

TEST_F(WeightsBuffersTest, UpdatesInPlaceWhileNobodyReads) {
  make(2);
  EXPECT_TRUE(update().in_place());
  sent(send_to(0));
  EXPECT_TRUE(update().in_place());
  EXPECT_EQ(buffers->current()[0], 2);
  EXPECT_EQ(buffers->count(), 1u);
}

TEST_F(WeightsBuffersTest, LeavesWeightsAloneThatAreBeingSent) {
  make(2);
  update();
  const WeightsBuffers::Loan loan = send_to(0);
  EXPECT_FALSE(update().in_place());
  EXPECT_EQ(loan.weights[0], 1);
  EXPECT_EQ(buffers->current()[0], 2);
  EXPECT_EQ(buffers->copies(), 1);
  EXPECT_TRUE(update().in_place());
  EXPECT_EQ(loan.weights[0], 1);
}

TEST_F(WeightsBuffersTest, UsesABufferAgainOnceItHasBeenSent) {
  make(2);
  const WeightsBuffers::Loan first = send_to(0);
  update();
  const WeightsBuffers::Loan second = send_to(1);
  sent(first);
  update();
  EXPECT_EQ(buffers->count(), 2u);
  EXPECT_EQ(second.weights[0], 1);
  EXPECT_EQ(buffers->current()[0], 2);
}

TEST_F(WeightsBuffersTest, NeedsOneBufferMoreThanWorkersAndNoMore) {
  make(3);
  std::vector<WeightsBuffers::Loan> loans(3);
  for (int round = 0; round < 20; ++round) {
    const int worker = round % 3;
    WeightsBuffers::Loan& loan = loans[static_cast<std::size_t>(worker)];
    if (loan.pending != nullptr) {
      EXPECT_EQ(loan.weights[0], static_cast<float>(round - 3));
      sent(loan);
      buffers->returned(worker);
    }
    loan = send_to(worker);
    update();
  }
  EXPECT_EQ(buffers->count(), 4u);
}

TEST_F(WeightsBuffersTest, WaitsForTheNewsRatherThanCopyWhenAllReadersAreKnownToBeDone) {
  make(2);
  send_to(0), send_to(1);
  buffers->returned(0), buffers->returned(1);
  EXPECT_TRUE(update().in_place());
  EXPECT_EQ(settled, 1);
  EXPECT_EQ(buffers->count(), 1u);
}

TEST_F(WeightsBuffersTest, TellsWhenMemoryIsFull) {
  limit = 1;
  make(1);
  send_to(0);
  EXPECT_EQ(buffers->begin_update().status().code(), Code::kResourceExhausted);
}

}  // namespace
}  // namespace syncopate::ps
