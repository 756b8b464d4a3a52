#include "experiments/checkpoint/background_writer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace syncopate::experiments {
namespace {

// A disk that is as slow as the test wants.
struct SlowDisk {
  std::promise<void> go_on;
  std::atomic<int> written = 0;

  BackgroundWriter::Write write() {
    return [this, wait = go_on.get_future().share()](const TrainingState& state, const std::stop_token&) {
      wait.wait();
      written += static_cast<int>(state.step);
    };
  }
};

TEST(BackgroundWriter, HasOneOnItsWayAndTakesNoOtherMeanwhile) {
  SlowDisk disk;
  BackgroundWriter writer;
  TrainingState* state = writer.begin();
  ASSERT_NE(state, nullptr);
  state->step = 3;
  writer.submit(disk.write());
  EXPECT_EQ(writer.begin(), nullptr);
  EXPECT_EQ(writer.begin(), nullptr) << "nor is it queued";
  disk.go_on.set_value();
  writer.finish();
  EXPECT_EQ(disk.written, 3);
  EXPECT_NE(writer.begin(), nullptr);
}

TEST(BackgroundWriter, KeepsTheMemoryOfStates) {
  BackgroundWriter writer;
  const float* memory = writer.begin()->piece("weights", {0, 1000}).data();
  writer.submit([](const TrainingState&, const std::stop_token&) {});
  writer.finish();
  TrainingState* state = writer.begin();
  EXPECT_TRUE(state->names().empty());
  EXPECT_EQ(state->piece("weights", {0, 1000}).data(), memory);
}

TEST(BackgroundWriter, TellsWhatItWritesToStopWhenItEnds) {
  std::promise<void> told, begun;
  {
    BackgroundWriter writer;
    writer.begin();
    writer.submit([&](const TrainingState&, const std::stop_token& stop) {
      const std::stop_callback callback(stop, [&] { told.set_value(); });
      begun.set_value();
      told.get_future().wait();
    });
    begun.get_future().wait();
  }
  SUCCEED() << "it would still be waiting";
}

}  // namespace
}  // namespace syncopate::experiments
