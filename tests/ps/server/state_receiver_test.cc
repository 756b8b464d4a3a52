#include "ps/server/state_receiver.h"

#include <gmock/gmock.h>

#include <numeric>

#include "common/transport/faulty_transport.h"
#include "ps/server/forwarder.h"
#include "tests/support/cluster.h"

namespace syncopate::ps {
namespace {

using testing::HasSubstr;
using testing_support::connect_group;
using testing_support::soon;

// What a shard has: a piece of the arena, counts, and a table whose rows take several messages.
TrainingState some_state() {
  TrainingState state;
  state.step = 7;
  std::vector<float> weights(100);
  std::iota(weights.begin(), weights.end(), 0.5f);
  state.put("weights", 1000, weights);
  state.counts["clocks"] = {3, 4, 5};
  RowsState& rows = state.rows[0];
  rows.row_floats = 2;
  rows.keys.resize(150'000);
  std::iota(rows.keys.begin(), rows.keys.end(), RowKey{10});
  rows.values.resize(2 * rows.keys.size());
  std::iota(rows.values.begin(), rows.values.end(), 0.25f);
  return state;
}

void expect_received_over(FaultPlan plan) {
  const TrainingState sent = some_state();
  auto group = connect_group("shm", 2);
  StateReceiver receiver;
  testing_support::run_ranks(2, [&](int rank) {
    if (rank == 0) {
      const SteadyClock clock;
      FaultyTransport head(std::move(group[0]), plan);
      Forwarder forwarder(head, clock, 1, std::chrono::seconds(10));
      ASSERT_TRUE(forwarder.send(&sent).ok());
      ASSERT_TRUE(forwarder.wait_for_last_sends().ok());
      return;
    }
    while (!receiver.complete()) {
      Result<Message> message = group[1]->receive(soon());
      ASSERT_TRUE(message.ok()) << message.status().message();
      wire::Header header;
      ASSERT_TRUE(header.ParseFromString(message->header()));
      const Status status = receiver.accept(header.state(), *message);
      ASSERT_TRUE(status.ok()) << status.message();
    }
  });
  ASSERT_NE(receiver.state(), nullptr);
  const TrainingState& state = *receiver.state();
  EXPECT_EQ(state.step, 7);
  EXPECT_EQ(state.counts, sent.counts);
  ASSERT_EQ(state.rows.size(), 1u);
  EXPECT_EQ(state.rows.at(0).row_floats, 2);
  EXPECT_TRUE(state.rows.at(0).keys == sent.rows.at(0).keys);
  EXPECT_TRUE(state.rows.at(0).values == sent.rows.at(0).values);
  std::vector<float> weights(100);
  ASSERT_TRUE(state.read("weights", {1000, 1100}, weights).ok());
  EXPECT_EQ(weights.back(), 99.5f);
}

TEST(StateReceiver, HasWhatTheHeadHas) { expect_received_over({}); }
TEST(StateReceiver, TakesEachPieceOnce) { expect_received_over({.duplicate = 1.0}); }

TEST(StateReceiver, RefusesAPieceBehindAGap) {
  StateReceiver receiver;
  wire::State piece;
  piece.set_keys(0);
  piece.set_begin(5);
  EXPECT_THAT(receiver.accept(piece, Message()).message(), HasSubstr("a state's piece from 5 on behind 0"));
}

}  // namespace
}  // namespace syncopate::ps
