// That the device which other tests stand on finds what it is there to find.
#include "tests/support/shadow_device.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "common/optimizer/optimizer.h"
#include "common/optimizer/update_constants.h"
#include "common/random.h"

namespace syncopate::testing_support {
namespace {

constexpr std::size_t kElements = 19;
constexpr TimePoint kAnyTime{};

std::span<float> floats(std::span<std::byte> memory) {
  return {reinterpret_cast<float*>(memory.data()), memory.size() / sizeof(float)};
}

// A device with one stream beside that of compute, and memory on both sides.
struct Bench {
  explicit Bench(std::uint64_t seed = 0) : device(seed) {}

  ShadowDevice device;
  std::unique_ptr<Stream> side = std::move(*device.make_stream());
  std::unique_ptr<Event> first = std::move(*device.make_event());
  std::unique_ptr<Event> second = std::move(*device.make_event());
  std::span<std::byte> there = *device.allocate(kElements * sizeof(float));
  std::span<std::byte> here = *device.allocate_pinned(kElements * sizeof(float));
};

TEST(ShadowDevice, AllocatesZeroedAndAligned) {
  Bench bench;
  for (float value : floats(bench.there)) EXPECT_EQ(value, 0);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(bench.there.data()) % 256, 0u);
  EXPECT_EQ(bench.there.size(), kElements * sizeof(float));
}

TEST(ShadowDevice, DoesNothingBeforeAnEventIsWaitedFor) {
  Bench bench;
  floats(bench.here)[0] = 1;
  bench.side->copy_to_device(bench.here, bench.there);
  bench.side->record(*bench.first);
  floats(bench.here)[0] = 2;  // too early: the copy has not read it yet
  ASSERT_TRUE(bench.device.wait(*bench.first, kAnyTime).ok());
  EXPECT_EQ(floats(bench.there)[0], 2);
}

TEST(ShadowDevice, AHostThatReadsACopyTooEarlyReadsNaN) {
  Bench bench;
  bench.side->copy_to_host(bench.there, bench.here);
  bench.side->record(*bench.first);
  for (float value : floats(bench.here)) EXPECT_TRUE(std::isnan(value));
  ASSERT_TRUE(bench.device.wait(*bench.first, kAnyTime).ok());
  for (float value : floats(bench.here)) EXPECT_EQ(value, 0);
}

TEST(ShadowDevice, WhatNoEventOrdersHappensInAnyOrder) {
  std::multiset<float> seen;
  for (std::uint64_t seed = 0; seed < 64; ++seed) {
    Bench bench(seed);
    floats(bench.here)[0] = 5;
    bench.side->copy_to_device(bench.here, bench.there);
    float read = 0;
    bench.device.give(bench.device.compute(), [&] { read = floats(bench.there)[0]; });
    bench.device.finish();
    seen.insert(std::isnan(read) ? -1 : read);
  }
  EXPECT_GT(seen.count(0), 0u);   // before the copy
  EXPECT_GT(seen.count(-1), 0u);  // in its midst
  EXPECT_GT(seen.count(5), 0u);   // after it
}

TEST(ShadowDevice, WhatAnEventOrdersHappensInThatOrder) {
  for (std::uint64_t seed = 0; seed < 64; ++seed) {
    Bench bench(seed);
    floats(bench.here)[0] = 5;
    bench.side->copy_to_device(bench.here, bench.there);
    bench.side->record(*bench.first);
    bench.device.compute().wait_for(*bench.first);
    bench.side->record(*bench.first);  // the wait is for the point as it was
    float read = 0;
    bench.device.give(bench.device.compute(), [&] { read = floats(bench.there)[0]; });
    bench.device.compute().record(*bench.second);
    ASSERT_TRUE(bench.device.wait(*bench.second, kAnyTime).ok());
    EXPECT_EQ(read, 5);
  }
}

TEST(ShadowDevice, IsDoneAtLastIfAskedAgainAndAgain) {
  int undone = 0;
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    Bench bench(seed);
    EXPECT_TRUE(bench.device.done(*bench.first));  // never recorded
    bench.side->copy_to_host(bench.there, bench.here);
    bench.side->record(*bench.first);
    while (!bench.device.done(*bench.first)) ++undone;
    EXPECT_EQ(floats(bench.here)[0], 0);
  }
  EXPECT_GT(undone, 0);
}

TEST(ShadowDevice, TimePassesBetweenTwoPoints) {
  Bench bench;
  bench.side->record(*bench.first);
  bench.side->record(*bench.second);
  ASSERT_TRUE(bench.device.wait(*bench.second, kAnyTime).ok());
  EXPECT_GT(bench.device.between(*bench.first, *bench.second), Duration::zero());
}

TEST(ShadowDevice, UpdatesLikeTheOptimizerBitByBit) {
  Random random(3);
  for (const OptimizerKind kind :
       {OptimizerKind::kSgd, OptimizerKind::kMomentum, OptimizerKind::kAdam, OptimizerKind::kAdamW}) {
    for (const bool nesterov : {false, true}) {
      const OptimizerConfig rule{.kind = kind, .nesterov = nesterov, .weight_decay = 0.01f};
      ShadowDevice device;
      const std::span<float> weights = *allocate_floats(device, kElements);
      const std::span<float> gradient = *allocate_floats(device, kElements);
      const DeviceOptimizerState state = *allocate_state(device, {.kind = kind}, kElements);
      const std::span<std::byte> memory = *device.allocate(sizeof(update_rule::UpdateConstants));
      auto* const constants = reinterpret_cast<update_rule::UpdateConstants*>(memory.data());
      OptimizerState expected_state({.kind = kind}, kElements);
      std::vector<float> expected(kElements);
      for (int step = 1; step <= 3; ++step) {
        for (float& value : gradient) value = static_cast<float>(random.uniform(-1, 1));
        const UpdateStep update{0.1f, 0.5f, step};
        Optimizer(rule).apply(expected, gradient, expected_state, 0, update);
        *constants = update_rule::constants_of(rule, update);
        device.compute().update(rule, {weights, gradient, state, constants});
        device.finish();
        EXPECT_EQ(std::memcmp(weights.data(), expected.data(), weights.size_bytes()), 0);
      }
    }
  }
}

TEST(ShadowDevice, CountsCopiesThatWouldHoldTheHostUp) {
  Bench bench;
  std::vector<std::byte> host(bench.there.size());
  bench.side->copy_to_host(bench.there, host);
  bench.device.finish();
  EXPECT_EQ(bench.device.unpinned_copies(), 1u);
  const auto pinned = bench.device.pin(host);
  ASSERT_TRUE(pinned.ok());
  EXPECT_FALSE(bench.device.pin(std::span(host).subspan(4, 4)).ok());
  bench.side->copy_to_host(bench.there, host);
  bench.side->copy_to_host(bench.there, bench.here);
  bench.device.finish();
  EXPECT_EQ(bench.device.unpinned_copies(), 1u);
}

TEST(ShadowDevice, DoesWhatWasCapturedOncePerLaunch) {
  Bench bench;
  int first = 0, second = 0, seen = 0;
  ASSERT_TRUE(bench.device.begin_capture().ok());
  bench.device.give(bench.device.compute(), [&] { ++first; });
  bench.device.compute().record(*bench.first);
  bench.side->wait_for(*bench.first);
  bench.device.give(*bench.side, [&] { second = first; });
  bench.side->record(*bench.second);
  bench.device.compute().wait_for(*bench.second);
  const Result<std::unique_ptr<Graph>> graph = bench.device.end_capture();
  ASSERT_TRUE(graph.ok());
  bench.device.finish();
  EXPECT_EQ(first, 0);
  for (int launch = 1; launch <= 3; ++launch) {
    bench.device.launch(**graph);
    bench.device.give(bench.device.compute(), [&] { seen = second; });
    bench.device.finish();
    EXPECT_EQ(seen, launch);
  }
}

TEST(ShadowDevice, RefusesACaptureWhoseStreamsAreNotJoined) {
  Bench bench;
  ASSERT_TRUE(bench.device.begin_capture().ok());
  bench.device.compute().record(*bench.first);
  bench.side->wait_for(*bench.first);
  bench.device.give(*bench.side, [] {});
  EXPECT_FALSE(bench.device.end_capture().ok());
}

TEST(ShadowDevice, FailsOnDemandAndIgnoresWhatComesAfter) {
  Bench bench;
  int done = 0;
  bench.device.fail_after(2, {Code::kInternal, "on demand"});
  for (int i = 0; i < 4; ++i) bench.device.give(*bench.side, [&] { ++done; });
  bench.side->record(*bench.first);
  EXPECT_TRUE(bench.device.status().ok());
  EXPECT_EQ(bench.device.wait(*bench.first, kAnyTime).message(), "on demand");
  EXPECT_EQ(bench.device.status().code(), Code::kInternal);
  EXPECT_TRUE(bench.device.done(*bench.first));
  bench.device.give(*bench.side, [&] { ++done; });
  bench.device.finish();
  EXPECT_EQ(done, 2);
  EXPECT_FALSE(bench.device.allocate(1).ok());
}

TEST(ShadowDevice, HangsOnDemand) {
  Bench bench;
  bench.side->copy_to_host(bench.there, bench.here);
  bench.side->record(*bench.first);
  bench.device.hang(true);
  EXPECT_EQ(bench.device.wait(*bench.first, kAnyTime).code(), Code::kDeadlineExceeded);
  EXPECT_FALSE(bench.device.done(*bench.first));
  bench.device.hang(false);
  EXPECT_TRUE(bench.device.wait(*bench.first, kAnyTime).ok());
}

TEST(ShadowDevice, HasNoMoreMemoryThanItIsGiven) {
  ShadowDevice device;
  device.limit_memory(100);
  EXPECT_TRUE(device.allocate(60).ok());
  EXPECT_EQ(device.allocate_pinned(60).status().code(), Code::kResourceExhausted);
  EXPECT_TRUE(device.allocate(40).ok());
}

TEST(ShadowDevice, ReleasesMemoryOnceItsWorkIsDone) {
  Bench bench;
  const std::size_t before = bench.device.memory().allocated;
  const std::span<std::byte> more = *bench.device.allocate(bench.here.size());
  bench.device.limit_memory(0);
  floats(bench.here)[0] = 5;
  bench.side->copy_to_device(bench.here, more);
  bench.side->copy_to_host(more, bench.here);
  EXPECT_TRUE(bench.device.release(more, kAnyTime).ok());
  EXPECT_EQ(floats(bench.here)[0], 5);
  EXPECT_EQ(bench.device.memory().allocated, before);
  EXPECT_EQ(bench.device.memory().free, more.size());
}

TEST(ShadowDevice, ReleasesNothingWhileItHangs) {
  Bench bench;
  bench.side->copy_to_host(bench.there, bench.here);
  bench.device.hang(true);
  EXPECT_EQ(bench.device.release(bench.there, kAnyTime).code(), Code::kDeadlineExceeded);
  bench.device.hang(false);
}

}  // namespace
}  // namespace syncopate::testing_support
