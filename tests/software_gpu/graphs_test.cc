// The software GPU's own: what streams capture, and graphs that are launched.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/software_gpu/grid.h"
#include "tests/software_gpu/own_test.h"

namespace software_gpu {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Graphs : public OwnTest {
 protected:
  ~Graphs() override {
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    if (executable_ != nullptr) cudaGraphExecDestroy(executable_);
    if (graph_ != nullptr) cudaGraphDestroy(graph_);
  }

  void begin(cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal) {
    ASSERT_EQ(cudaStreamBeginCapture(one_, mode), cudaSuccess);
  }
  cudaError_t end() { return cudaStreamEndCapture(one_, &graph_); }
  void instantiate() {
    ASSERT_EQ(end(), cudaSuccess);
    ASSERT_EQ(cudaGraphInstantiate(&executable_, graph_, 0), cudaSuccess);
  }
  // Ends a capture that is no more good.
  void expect_invalid() {
    cudaStreamCaptureStatus status{};
    EXPECT_EQ(cudaStreamIsCapturing(one_, &status), cudaSuccess);
    EXPECT_EQ(status, cudaStreamCaptureStatusInvalidated);
    EXPECT_EQ(add(one_, 0, 1), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(graph_, nullptr);
    EXPECT_EQ(cudaStreamIsCapturing(one_, &status), cudaSuccess);
    EXPECT_EQ(status, cudaStreamCaptureStatusNone);
  }

  cudaError_t change(cudaStream_t stream, std::function<void()> body) {
    return launch({.name = "a kernel", .grid = 1, .block = 1, .body = std::move(body)}, stream);
  }
  cudaError_t add(cudaStream_t stream, int place, float value) {
    return change(stream, [to = device_ + place, value] { *to += value; });
  }
  // What the device holds, once all is done.
  std::vector<float> held(cudaStream_t stream) {
    cudaMemcpyAsync(pinned_, device_, kFloats * sizeof(float), cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    return {pinned_, pinned_ + kFloats};
  }

  cudaGraph_t graph_{};
  cudaGraphExec_t executable_{};
};

TEST_F(Graphs, DoWhatWasCapturedWithEachLaunch) {
  begin();
  add(one_, 0, 1);
  instantiate();
  EXPECT_THAT(held(one_), ElementsAre(0, 0, 0, 0));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(cudaGraphLaunch(executable_, one_), cudaSuccess);
  add(one_, 1, 5);
  EXPECT_THAT(held(one_), ElementsAre(3, 5, 0, 0));
}

TEST_F(Graphs, TakeArgumentsWhenTheyAreCapturedAndPinnedMemoryWhenTheyRun) {
  float step = 1;
  begin();
  add(one_, 0, step);
  cudaMemcpyAsync(device_ + 1, pinned_ + kFloats, sizeof(float), cudaMemcpyHostToDevice, one_);
  cudaMemcpyAsync(device_ + 2, device_ + 1, sizeof(float), cudaMemcpyDeviceToDevice, one_);
  cudaMemsetAsync(device_ + 3, 0, sizeof(float), one_);
  add(one_, 3, 9);
  instantiate();
  step = 7;
  for (const float value : {2.0f, 3.0f}) {
    pinned_[kFloats] = value;
    cudaGraphLaunch(executable_, one_);
    EXPECT_THAT(held(one_), ElementsAre(value - 1, value, value, 9));
  }
}

TEST_F(Graphs, KeepTheOrderOfForksAndJoins) {
  begin();
  change(one_, [to = device_] {
    to[0] = 2;
    to[1] = to[2] = to[3] = 0;
  });
  cudaEventRecord(fork_, one_);
  cudaStreamWaitEvent(two_, fork_, cudaEventWaitDefault);
  change(two_, [to = device_] { to[1] = to[0] * 10; });
  change(one_, [to = device_] { to[2] = to[0] * 100; });
  cudaEventRecord(join_, two_);
  cudaStreamWaitEvent(one_, join_, cudaEventWaitDefault);
  change(one_, [to = device_] {
    to[3] = to[1] + to[2];
    to[0] = -1;
  });
  instantiate();
  for (int i = 0; i < 8; ++i) {
    cudaStream_t const stream = i % 2 == 0 ? one_ : two_;
    cudaGraphLaunch(executable_, stream);
    EXPECT_THAT(held(stream), ElementsAre(-1, 20, 200, 220));
  }
}

TEST_F(Graphs, RecordEventsThatOthersWaitForAndThatAreTimed) {
  begin();
  EXPECT_EQ(cudaEventRecordWithFlags(fork_, one_, cudaEventRecordExternal), cudaSuccess);
  add(one_, 0, 1);
  EXPECT_EQ(cudaEventRecordWithFlags(join_, one_, cudaEventRecordExternal), cudaSuccess);
  instantiate();
  EXPECT_EQ(cudaEventQuery(join_), cudaSuccess) << "never recorded";
  cudaGraphLaunch(executable_, one_);
  EXPECT_EQ(cudaStreamWaitEvent(two_, join_, cudaEventWaitDefault), cudaSuccess);
  change(two_, [to = device_] { to[1] = to[0]; });
  EXPECT_THAT(held(two_), ElementsAre(1, 1, 0, 0));
  EXPECT_EQ(cudaEventQuery(join_), cudaSuccess);
  float milliseconds = -1;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, fork_, join_), cudaSuccess);
  EXPECT_GE(milliseconds, 0);
}

TEST_F(Graphs, WaitForEventsOfOthers) {
  begin();
  EXPECT_EQ(cudaStreamWaitEvent(one_, fork_, cudaEventWaitExternal), cudaSuccess);
  change(one_, [to = device_] { to[1] = to[0]; });
  instantiate();
  add(two_, 0, 3);
  cudaEventRecord(fork_, two_);
  cudaGraphLaunch(executable_, one_);
  EXPECT_THAT(held(one_), ElementsAre(3, 3, 0, 0));
}

TEST_F(Graphs, CallFunctionsOfTheHost) {
  static std::atomic<int> calls = 0;
  begin();
  add(one_, 0, 1);
  int by = 5;
  cudaLaunchHostFunc(
      one_, [](void* by_so_much) { calls += *static_cast<int*>(by_so_much); }, &by);
  instantiate();
  EXPECT_EQ(calls, 0);
  for (int i = 0; i < 2; ++i) cudaGraphLaunch(executable_, one_);
  EXPECT_EQ(cudaStreamSynchronize(one_), cudaSuccess);
  EXPECT_EQ(calls, 10);
}

TEST_F(Graphs, LeaveOtherStreamsAlone) {
  begin();
  add(one_, 0, 1);
  add(two_, 1, 1);
  cudaEventRecord(fork_, two_);
  // What waits is done by another thread: this one may wait for nothing.
  std::thread([this] {
    EXPECT_EQ(cudaEventSynchronize(fork_), cudaSuccess);
    EXPECT_THAT(held(two_), ElementsAre(0, 1, 0, 0));
  }).join();
  cudaStreamCaptureStatus status{};
  EXPECT_EQ(cudaStreamIsCapturing(two_, &status), cudaSuccess);
  EXPECT_EQ(status, cudaStreamCaptureStatusNone);
  instantiate();
}

TEST_F(Graphs, AreNotMadeOfAForkThatIsNotJoined) {
  begin();
  cudaEventRecord(fork_, one_);
  cudaStreamWaitEvent(two_, fork_, cudaEventWaitDefault);
  add(two_, 0, 1);
  EXPECT_EQ(end(), cudaErrorStreamCaptureUnjoined);
  EXPECT_STREQ(cudaGetErrorName(cudaGetLastError()), "cudaErrorStreamCaptureUnjoined");
  EXPECT_EQ(graph_, nullptr);
  add(two_, 0, 1);
  EXPECT_THAT(held(two_), ElementsAre(1, 0, 0, 0)) << "what was captured is done";
}

TEST_F(Graphs, AreNotMadeOfTwoCaptures) {
  begin();
  ASSERT_EQ(cudaStreamBeginCapture(two_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  cudaEventRecord(fork_, two_);
  EXPECT_EQ(cudaStreamWaitEvent(one_, fork_, cudaEventWaitDefault), cudaErrorStreamCaptureMerge);
  cudaGraph_t other{};
  EXPECT_EQ(cudaStreamEndCapture(two_, &other), cudaErrorStreamCaptureInvalidated);
  expect_invalid();
}

TEST_F(Graphs, AreNotMadeByAnotherThreadOrStream) {
  begin();
  cudaEventRecord(fork_, one_);
  cudaStreamWaitEvent(two_, fork_, cudaEventWaitDefault);
  EXPECT_EQ(cudaStreamEndCapture(two_, &graph_), cudaErrorStreamCaptureUnmatched);
  expect_invalid();
  begin();
  std::thread([this] { EXPECT_EQ(end(), cudaErrorStreamCaptureWrongThread); }).join();
  expect_invalid();
}

TEST_F(Graphs, WaitForNoEventThatWasRecordedOutside) {
  cudaEventRecord(fork_, two_);
  begin();
  EXPECT_EQ(cudaStreamWaitEvent(one_, fork_, cudaEventWaitDefault), cudaErrorStreamCaptureIsolation);
  expect_invalid();
}

TEST_F(Graphs, AreSpoiltByWhatWaits) {
  const auto expect_unsupported = [this](auto call) {
    begin();
    EXPECT_EQ(call(), cudaErrorStreamCaptureUnsupported);
    expect_invalid();
  };
  expect_unsupported([&] { return cudaStreamSynchronize(one_); });
  expect_unsupported([&] { return cudaStreamSynchronize(two_); });
  expect_unsupported([&] { return cudaDeviceSynchronize(); });
  expect_unsupported([&] { return cudaEventQuery(join_); });
  expect_unsupported([&] { return cudaFree(device_); });
  void* memory = nullptr;
  expect_unsupported([&] { return cudaMalloc(&memory, 4); });
  float pageable = 0;
  expect_unsupported([&] { return cudaMemcpyAsync(device_, &pageable, sizeof(float), cudaMemcpyHostToDevice, one_); });
}

TEST_F(Graphs, AreSpoiltByOtherThreadsIfTheyAreGlobal) {
  for (const auto mode : {cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeGlobal}) {
    const bool is_global = mode == cudaStreamCaptureModeGlobal;
    begin(mode);
    std::thread([&] {
      EXPECT_EQ(cudaEventQuery(join_), is_global ? cudaErrorStreamCaptureUnsupported : cudaSuccess);
    }).join();
    EXPECT_EQ(end(), is_global ? cudaErrorStreamCaptureInvalidated : cudaSuccess);
    if (!is_global) cudaGraphDestroy(std::exchange(graph_, nullptr));
  }
  begin(cudaStreamCaptureModeRelaxed);
  EXPECT_EQ(cudaEventQuery(join_), cudaSuccess);
  EXPECT_EQ(end(), cudaSuccess);
}

TEST_F(Graphs, HaveNoEventThatIsAskedOrTimed) {
  begin(cudaStreamCaptureModeRelaxed);
  cudaEventRecord(fork_, one_);
  EXPECT_EQ(cudaEventQuery(fork_), cudaErrorCapturedEvent);
  EXPECT_THAT(fault(), AllOf(HasSubstr("cudaEventQuery of an event that was last recorded in a capture"),
                             HasSubstr("Graphs_HaveNoEventThatIsAskedOrTimed_Test")))
      << "where that is in the source";
  expect_invalid();
  cudaEventRecord(join_, two_);
  EXPECT_EQ(cudaEventSynchronize(join_), cudaSuccess);
  float milliseconds = 0;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, fork_, join_), cudaErrorCapturedEvent);
  EXPECT_THAT(fault(), HasSubstr("cudaEventElapsedTime of an event that was last recorded in a capture"));
}

TEST_F(Graphs, CaptureNoLaunchOfAnother) {
  begin();
  add(one_, 0, 1);
  instantiate();
  EXPECT_EQ(cudaEventRecordWithFlags(fork_, one_, cudaEventRecordExternal), cudaErrorInvalidValue);
  EXPECT_EQ(cudaStreamWaitEvent(one_, fork_, cudaEventWaitExternal), cudaErrorInvalidValue);
  ASSERT_EQ(cudaStreamBeginCapture(two_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(executable_, two_), cudaErrorStreamCaptureUnsupported);
  EXPECT_THAT(fault(), HasSubstr("not modelled"));
  cudaGraph_t other{};
  EXPECT_EQ(cudaStreamEndCapture(two_, &other), cudaErrorStreamCaptureInvalidated);
}

}  // namespace
}  // namespace software_gpu
