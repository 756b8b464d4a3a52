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
  EXPECT_FALSE(failure.keep(cudaErrorInvalidValue, "cudaMalloc"));
  EXPECT_FALSE(failure.keep(cudaErrorIllegalAddress, "cudaEventQuery"));
  EXPECT_TRUE(failure.keep(cudaSuccess, "cudaFree"));
  EXPECT_FALSE(failure.none());
  EXPECT_EQ(failure.status().message(), "GPU 0: cudaMalloc: cudaErrorInvalidValue (invalid argument)");
}

TEST(FirstFailure, OfWorkNamesTheLastThatWasGivenAndHowToFindTheCause) {
  FirstFailure failure("GPU 0");
  failure.giving("relu_forward");
  failure.giving("batch_norm_backward");
  EXPECT_FALSE(failure.keep(cudaErrorIllegalAddress, "cudaEventQuery"));
  failure.giving("add");
  EXPECT_EQ(failure.status().message(),
            "GPU 0: cudaEventQuery: cudaErrorIllegalAddress (an illegal memory access was encountered); the last work "
            "given was batch_norm_backward; earlier work may be at fault: CUDA_LAUNCH_BLOCKING=1 or compute-sanitizer "
            "shows which");
}

TEST(FirstFailure, OfTheCardIsNotTheProgramsFault) {
  FirstFailure failure("GPU 0");
  failure.giving("relu_forward");
  EXPECT_FALSE(failure.keep(cudaErrorECCUncorrectable));
  EXPECT_EQ(failure.status().message(),
            "GPU 0: relu_forward: cudaErrorECCUncorrectable (uncorrectable ECC error encountered); the last work given "
            "was relu_forward; the card is at fault, not the program: nvidia-smi -q -d ECC");
}

}  // namespace
}  // namespace syncopate
