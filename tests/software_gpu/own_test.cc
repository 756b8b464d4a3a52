#include "tests/software_gpu/own_test.h"

#include <gmock/gmock.h>

#include <utility>

extern "C" void software_gpu_found(const char* fault);

namespace software_gpu {
namespace {

std::vector<std::string> found;

}  // namespace

OwnTest::OwnTest() {
  for (cudaStream_t* stream : {&one_, &two_}) cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking);
  for (cudaEvent_t* event : {&fork_, &join_}) cudaEventCreateWithFlags(event, cudaEventDefault);
  cudaMalloc(reinterpret_cast<void**>(&device_), kFloats * sizeof(float));
  cudaHostAlloc(reinterpret_cast<void**>(&pinned_), 2 * kFloats * sizeof(float), cudaHostAllocDefault);
  cudaMemsetAsync(device_, 0, kFloats * sizeof(float), one_);
  cudaStreamSynchronize(one_);
}

OwnTest::~OwnTest() {
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  for (cudaStream_t stream : {one_, two_}) cudaStreamDestroy(stream);
  for (cudaEvent_t event : {fork_, join_}) cudaEventDestroy(event);
  cudaFree(device_);
  cudaFreeHost(pinned_);
  EXPECT_THAT(std::exchange(found, {}), testing::IsEmpty());
}

std::vector<std::string>& OwnTest::faults() { return found; }

std::string OwnTest::fault() {
  const std::vector<std::string> taken = std::exchange(found, {});
  return taken.size() == 1 ? taken[0] : std::to_string(taken.size()) + " faults";
}

}  // namespace software_gpu

extern "C" void software_gpu_found(const char* fault) { software_gpu::found.emplace_back(fault); }
