// The software GPU's own: what touches the same bytes, one writes, and nothing orders.
#include "tests/software_gpu/accesses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "tests/software_gpu/grid.h"
#include "tests/software_gpu/machine.h"
#include "tests/software_gpu/own_test.h"
#include "tests/software_gpu/streams.h"

// GoogleTest's pointers that are shared: no kernel has such operations.
extern "C" __attribute__((no_sanitize("thread"))) int __tsan_atomic32_fetch_add(volatile int* value, int by, int) {
  return __sync_fetch_and_add(value, by);
}
extern "C" __attribute__((no_sanitize("thread"))) int __tsan_atomic32_fetch_sub(volatile int* value, int by, int) {
  return __sync_fetch_and_sub(value, by);
}

namespace software_gpu {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

class Accesses : public OwnTest {
 protected:
  void run(const char* name, unsigned blocks, unsigned threads, std::function<void()> body) {
    ASSERT_EQ(launch({.name = name, .grid = blocks, .block = threads, .body = std::move(body)}, one_), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(one_), cudaSuccess);
  }
  void write(const char* name, cudaStream_t stream, float* to) {
    launch({.name = name, .grid = 1, .block = 1, .body = [to] { *to = 1; }}, stream);
  }
  static unsigned thread() { return threadIdx.x + blockIdx.x * blockDim.x; }
};

TEST_F(Accesses, OfTwoStreamsAreAFault) {
  write("writes first", one_, device_);
  cudaMemcpyAsync(pinned_, device_, sizeof(float), cudaMemcpyDeviceToHost, two_);
  cudaDeviceSynchronize();
  EXPECT_THAT(fault(), AllOf(HasSubstr("writes first"), HasSubstr("cudaMemcpyAsync.to_host"), HasSubstr("no stream")));
}

TEST_F(Accesses, OfTwoStreamsAreOrderedByEventsAndTheHost) {
  for (float* const to : {device_, device_ + 1}) {
    write("writes", one_, to);
    cudaEventRecord(fork_, one_);
    cudaStreamWaitEvent(two_, fork_, cudaEventWaitDefault);
    cudaMemcpyAsync(pinned_, device_, kFloats * sizeof(float), cudaMemcpyDeviceToHost, two_);
    cudaStreamSynchronize(two_);
  }
  EXPECT_THAT(faults(), IsEmpty());
}

TEST_F(Accesses, OfEarlierWorkAreNotOrderedByALaterEvent) {
  cudaEventRecord(fork_, one_);
  write("writes behind the event", one_, device_);
  cudaStreamWaitEvent(two_, fork_, cudaEventWaitDefault);
  write("writes too", two_, device_);
  cudaDeviceSynchronize();
  EXPECT_THAT(fault(), AllOf(HasSubstr("writes behind the event"), HasSubstr("writes too")));
}

TEST_F(Accesses, OfReadersOfSeveralStreamsAreAllKnown) {
  cudaMemcpyAsync(pinned_, device_, sizeof(float), cudaMemcpyDeviceToHost, two_);
  {
    const std::lock_guard hold(machine_lock());
    while (do_some(1)) {
    }
  }
  cudaMemcpyAsync(pinned_ + 1, device_, sizeof(float), cudaMemcpyDeviceToHost, one_);
  cudaStreamSynchronize(one_);
  write("writes after one of two readers", one_, device_);
  cudaDeviceSynchronize();
  EXPECT_THAT(fault(), HasSubstr("writes after one of two readers"));
}

TEST_F(Accesses, OfAGraphAreOrderedByItsEdges) {
  for (const bool is_joined_first : {true, false}) {
    cudaStreamBeginCapture(one_, cudaStreamCaptureModeThreadLocal);
    cudaEventRecord(fork_, one_);
    cudaStreamWaitEvent(two_, fork_, cudaEventWaitDefault);
    write("writes in a fork", two_, device_);
    cudaEventRecord(join_, two_);
    if (is_joined_first) cudaStreamWaitEvent(one_, join_, cudaEventWaitDefault);
    write("writes beside it", one_, device_);
    if (!is_joined_first) cudaStreamWaitEvent(one_, join_, cudaEventWaitDefault);
    cudaGraph_t graph{};
    cudaGraphExec_t executable{};
    ASSERT_EQ(cudaStreamEndCapture(one_, &graph), cudaSuccess);
    ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
    for (int i = 0; i < 8; ++i) cudaGraphLaunch(executable, i % 2 == 0 ? one_ : two_);
    cudaDeviceSynchronize();
    cudaGraphExecDestroy(executable);
    cudaGraphDestroy(graph);
    if (is_joined_first) EXPECT_THAT(faults(), IsEmpty());
  }
  EXPECT_THAT(fault(), AllOf(HasSubstr("writes in a fork"), HasSubstr("writes beside it")));
}

TEST_F(Accesses, OfNeighboursWithoutABarrierAreAFault) {
  run("reads its neighbour", 1, kFloats, [to = device_] {
    to[thread()] = 1;
    if (thread() > 0) to[thread()] += to[thread() - 1];
  });
  EXPECT_THAT(fault(),
              AllOf(HasSubstr("reads its neighbour"), HasSubstr("no barrier"), HasSubstr("accesses_test.cc:")));
}

TEST_F(Accesses, OfNeighboursAreOrderedByABarrier) {
  run("meets its neighbours", 1, 64,
      [to = device_] { to[thread() % kFloats == thread() ? thread() : 0] += 0 * (thread() < kFloats ? 1 : 0); });
  EXPECT_THAT(fault(), HasSubstr("meets its neighbours")) << "64 threads change 4 floats";
  run("meets its neighbours in order", 1, kFloats, [to = device_] {
    to[thread()] = 1;
    meet_block(__LINE__);
    const float next = to[(thread() + 1) % kFloats];
    meet_block(__LINE__);
    to[thread()] = next;
  });
  EXPECT_THAT(faults(), IsEmpty());
}

TEST_F(Accesses, OfAWarpAreOrderedWithinItAlone) {
  run("is a warp that meets", 1, 32, [to = device_] {
    if (thread() == 3) *to = 1;
    exchange_in_warp(0, 0, __LINE__);
    if (thread() == 5) *to = 2;
  });
  EXPECT_THAT(faults(), IsEmpty());
  run("is two warps that meet", 1, 64, [to = device_] {
    if (thread() == 3) *to = 1;
    exchange_in_warp(0, 0, __LINE__);
    if (thread() == 35) *to = 2;
  });
  EXPECT_THAT(fault(), HasSubstr("is two warps that meet"));
}

TEST_F(Accesses, OfBlocksAreNeverOrdered) {
  run("is read by all and written by one", 2, 2, [to = device_] {
    const float sum = to[0] + to[1];
    meet_block(__LINE__);
    if (thread() == 3) *to = sum;
  });
  EXPECT_THAT(fault(), HasSubstr("is read by all and written by one"));
}

TEST_F(Accesses, OfBlocksAreOrderedByTicketsBetweenBarriers) {
  auto* const ticket = reinterpret_cast<unsigned*>(device_);
  for (const bool is_behind_barrier : {true, false}) {
    run("clears the ticket", 1, 1, [ticket] { *ticket = 0; });
    run("adds up parts", 2, 2, [ticket, is_behind_barrier, to = device_] {
      const bool is_first = thread() % 2 == 0;
      if (!is_first) to[1 + thread() / 2] = 1;
      if (is_behind_barrier) meet_block(__LINE__);
      const bool is_last = is_first && increment(ticket, 1) == 1;
      meet_block(__LINE__);
      if (is_last) to[3] = to[1] + to[2];
    });
    if (is_behind_barrier) EXPECT_THAT(faults(), IsEmpty());
  }
  EXPECT_THAT(fault(), HasSubstr("adds up parts")) << "the other thread's part may come behind the ticket";
}

TEST_F(Accesses, OfBytesOfOneWordAreApart) {
  run("writes a byte each", 2, 8, [to = reinterpret_cast<unsigned char*>(device_)] { to[thread()] = 1; });
  run("reads words", 1, kFloats, [to = device_] { to[thread()] += 1; });
  EXPECT_THAT(faults(), IsEmpty());
  run("writes a byte twice", 1, 8, [to = reinterpret_cast<unsigned char*>(device_)] { to[thread() / 2] = 1; });
  EXPECT_THAT(fault(), HasSubstr("writes a byte twice"));
}

TEST_F(Accesses, OfTheHostToASourceInFlightAreAFault) {
  for (const bool waits : {true, false}) {
    cudaMemcpyAsync(device_, pinned_, sizeof(float), cudaMemcpyHostToDevice, one_);
    if (waits) cudaStreamSynchronize(one_);
    pinned_[0] = waits ? 2 : 3;
  }
  cudaDeviceSynchronize();
  EXPECT_THAT(fault(), HasSubstr("the host writes pinned memory"));
}

TEST_F(Accesses, OfCopiesThereAndBackAreInTheOrderOfTheirStream) {
  pinned_[0] = 5;
  cudaMemcpyAsync(device_, pinned_, sizeof(float), cudaMemcpyHostToDevice, one_);
  cudaMemcpyAsync(pinned_, device_ + 1, sizeof(float), cudaMemcpyDeviceToHost, one_);
  cudaMemcpyAsync(device_ + 1, pinned_, sizeof(float), cudaMemcpyHostToDevice, one_);
  cudaMemcpyAsync(pinned_ + 1, device_, sizeof(float), cudaMemcpyDeviceToHost, one_);
  cudaStreamSynchronize(one_);
  EXPECT_EQ(pinned_[0], 0);
  EXPECT_EQ(pinned_[1], 5);
}

}  // namespace
}  // namespace software_gpu
