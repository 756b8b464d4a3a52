// What becomes of snapshots of a model whose workers keep a state of their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/experiments/cluster/coordinator/coordinated_run.h"

namespace syncopate::experiments {
namespace {

using control::FromCoordinator;
using control::ToCoordinator;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

RunRequest sync_with_local_state(int workers) {
  RunRequest config;
  config.mode = Mode::kPs;
  config.workers = workers;
  config.servers = 1;
  config.timeout_seconds = 600;  // nobody is silent for too long in here
  return config;
}

void say_state(Peer& worker, std::int64_t epoch, const std::vector<float>& state) {
  ToCoordinator message;
  message.mutable_local_state()->set_point(epoch);
  message.mutable_local_state()->mutable_values()->Add(state.begin(), state.end());
  worker.say(message);
}

void say_snapshot(Peer& worker, std::int64_t epoch, bool final = false) {
  ToCoordinator message;
  message.mutable_snapshot()->set_point(epoch);
  message.mutable_snapshot()->set_final(final);
  worker.say(message, {1, 2, 3});
}

// What comes next is the answer to a heartbeat, which comes after all that was sent before.
bool hears_nothing_yet(Peer& peer) {
  peer.say_step(0);
  return peer.hear().first.has_alive();
}

// Until all that the worker has said has been heard.
void wait_for(Peer& worker) { EXPECT_TRUE(hears_nothing_yet(worker)); }

TEST(LocalStateDelivery, ASnapshotIsEvaluatedWithTheMeanOfAllWorkersOfItsEpoch) {
  CoordinatedRun run(sync_with_local_state(2), false, 2);
  run.evaluator(), run.worker(1);
  say_state(run.worker(0), 0, {1, 4});
  say_snapshot(run.worker(0), 0);
  wait_for(run.worker(0));
  EXPECT_TRUE(hears_nothing_yet(run.evaluator()));
  say_state(run.worker(1), 0, {3, 0});
  const auto [message, bytes] = run.evaluator().hear();
  EXPECT_THAT(message.snapshot().local_state(), ElementsAre(2, 2));
  EXPECT_EQ(bytes, 3 * sizeof(float));
}

TEST(LocalStateDelivery, ALostWorkerIsNotWaitedFor) {
  CoordinatedRun run(sync_with_local_state(3), false, 1);
  for (int rank : {0, 1, 2}) run.worker(rank);
  say_state(run.worker(0), 0, {1});
  say_snapshot(run.worker(0), 0);
  say_state(run.worker(2), 0, {3});
  wait_for(run.worker(0)), wait_for(run.worker(2));
  EXPECT_TRUE(hears_nothing_yet(run.evaluator()));
  run.processes().kill("worker 1");
  EXPECT_THAT(run.evaluator().hear().first.snapshot().local_state(), ElementsAre(2));
}

TEST(LocalStateDelivery, TheFinalWeightsAreHandedOnWithTheMeanOfTheLastEpoch) {
  CoordinatedRun run(sync_with_local_state(2), false, 1);
  run.worker(1);
  for (const std::int64_t epoch : {0, 1}) say_state(run.worker(0), epoch, {1.0f + static_cast<float>(epoch)});
  say_state(run.worker(1), 0, {3});
  say_snapshot(run.worker(0), 1, true);
  wait_for(run.worker(0)), wait_for(run.worker(1));
  EXPECT_TRUE(hears_nothing_yet(run.evaluator()));
  say_state(run.worker(1), 1, {4});
  EXPECT_THAT(run.evaluator().hear().first.snapshot().local_state(), ElementsAre(3));
  run.end();
  EXPECT_THAT(run.observer().final_weights, ElementsAre(1, 2, 3));
  EXPECT_THAT(run.observer().final_local_state, ElementsAre(3));
}

TEST(LocalStateDelivery, AStateOfAnotherSizeIsLeftOutAndReported) {
  CoordinatedRun run(sync_with_local_state(1), false, 2);
  say_state(run.worker(0), 0, {1, 2, 3});
  wait_for(run.worker(0));
  say_state(run.worker(0), 0, {1, 2});
  say_snapshot(run.worker(0), 0);
  EXPECT_THAT(run.evaluator().hear().first.snapshot().local_state(), ElementsAre(1, 2));
  run.end();
  EXPECT_THAT(run.observer().reports,
              testing::Contains("a local state of 3 values from worker 0, where the model's has 2, is left out"));
}

}  // namespace
}  // namespace syncopate::experiments
