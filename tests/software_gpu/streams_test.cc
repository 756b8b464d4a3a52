// The software GPU's own: functions of the host's that streams call.
#include "tests/software_gpu/streams.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <mutex>

#include "tests/software_gpu/machine.h"
#include "tests/software_gpu/own_test.h"

namespace software_gpu {
namespace {

using testing::HasSubstr;

class HostFunctions : public OwnTest {
 protected:
  static void call(void* calls) { ++*static_cast<std::atomic<int>*>(calls); }
};

TEST_F(HostFunctions, AreCalledInTheOrderOfTheirStream) {
  std::atomic<int> calls = 0;
  cudaLaunchHostFunc(one_, call, &calls);
  cudaEventRecord(fork_, one_);
  EXPECT_EQ(cudaEventSynchronize(fork_), cudaSuccess);
  EXPECT_EQ(calls, 1);
}

TEST_F(HostFunctions, MayNotCallTheRuntime) {
  cudaLaunchHostFunc(
      one_, [](void*) { cudaSetDevice(0); }, nullptr);
  EXPECT_EQ(cudaStreamSynchronize(one_), cudaSuccess);
  EXPECT_THAT(fault(), HasSubstr("cudaSetDevice in a function that a stream has called"));
}

TEST_F(HostFunctions, AreNotCalledAfterAnError) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto fail_first = [this] {
    const std::lock_guard hold(machine_lock());  // nobody else does a step
    std::atomic<int> calls = 0;
    cudaLaunchHostFunc(one_, call, &calls);
    cudaEventRecord(fork_, one_);
    fail_for_good(cudaErrorECCUncorrectable);
    const bool is_refused = cudaLaunchHostFunc(one_, call, &calls) == cudaErrorECCUncorrectable;
    const bool is_told = cudaStreamSynchronize(one_) == cudaErrorECCUncorrectable;
    // Both are dropped: a function that is called begins and ends.
    int steps = 0;
    while (do_some(1)) ++steps;
    std::_Exit(is_refused && is_told && calls == 0 && steps == 2 ? 0 : 1);
  };
  EXPECT_EXIT(fail_first(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace software_gpu
