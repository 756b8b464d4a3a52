#include "common/device/cuda/cuda_status.h"

#include <gtest/gtest.h>

namespace syncopate {
namespace {

// None of these needs a GPU.

TEST(CudaStatus, NamesTheCallAndGivesCudasWords) {
  const Status status = cuda_status(cudaErrorInvalidValue, "cudaMemcpyAsync");
  EXPECT_EQ(status.code(), Code::kInternal);
  EXPECT_EQ(status.message(), "cudaMemcpyAsync: cudaErrorInvalidValue (invalid argument)");
  EXPECT_TRUE(cuda_status(cudaSuccess, "cudaMemcpyAsync").ok());
}

TEST(CudaStatus, NoMemoryIsResourceExhausted) {
  EXPECT_EQ(cuda_status(cudaErrorMemoryAllocation, "cudaMalloc").code(), Code::kResourceExhausted);
}

TEST(FirstFailure, IsKeptWhateverComesLater) {
  FirstFailure failure("GPU 0");
  EXPECT_TRUE(failure.keep(cudaSuccess, "cudaSetDevice"));
  EXPECT_TRUE(failure.none());
  EXPECT_FALSE(failure.keep(cudaErrorIllegalAddress, "cudaEventQuery"));
  EXPECT_FALSE(failure.keep(cudaErrorInvalidValue, "cudaMalloc"));
  EXPECT_TRUE(failure.keep(cudaSuccess, "cudaFree"));
  EXPECT_FALSE(failure.none());
  EXPECT_EQ(failure.status().message(),
            "GPU 0: cudaEventQuery: cudaErrorIllegalAddress (an illegal memory access was encountered)");
}

}  // namespace
}  // namespace syncopate
