// What tests of the CUDA backend stand on: the backend in one precision, the oracle, and tensors on either side.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/common/cuda/gpu_test.h"
#include "tests/worker/tensor_helpers.h"
#include "worker/backend/cuda/cuda_backend.h"

namespace syncopate::worker {

// Returns the tolerance relative to the largest element of a result (and to 1). float32: sums here have up to 3000
// terms. The others: factors are rounded to 2^-11 and 2^-8, or cut to 2^-10 and 2^-7.
inline double tolerance_of(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
      return 1e-5;
    case Precision::kTf32:
      return 6e-3;
    case Precision::kBf16:
      return 3e-2;
    case Precision::kFp16:
      return 6e-3;
  }
  return 0;
}

class CudaBackendFixture : public testing_support::GpuTest, public testing::WithParamInterface<Precision> {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    Result<std::unique_ptr<ComputeBackend>> made = make_cuda_backend(device(), GetParam());
    ASSERT_TRUE(made.ok()) << made.status().message();
    cuda_ = std::move(*made);
  }
  void TearDown() override {
    if (cuda_) {
      EXPECT_TRUE(cuda_->status().ok()) << cuda_->status().message();
      cuda_.reset();
    }
    GpuTest::TearDown();
  }

  using GpuTest::download;
  // Returns it as floats.
  Tensor download(In tensor) {
    const ConstFloats view = cuda_->host_view(tensor);
    return {view.begin(), view.end()};
  }
  // A tensor of the type that the backend computes with.
  Out tensor_of(const Tensor& host) {
    const Out tensor = cuda_->allocate_tensor(host.size());
    cuda_->upload(host, tensor);
    return tensor;
  }
  // What is left of values in that type.
  Tensor rounded(const Tensor& host) { return download(In(tensor_of(host))); }

  void expect_close_on_device(In actual, const Tensor& expected, const char* what) {
    expect_close(download(actual), expected, tolerance_of(GetParam()), what);
  }
  void expect_equal_on_device(In actual, const Tensor& expected, const char* what) {
    EXPECT_EQ(download(actual), expected) << what;
  }

  Random random_{7};
  std::unique_ptr<ComputeBackend> reference_ = make_reference_backend();
  std::unique_ptr<ComputeBackend> cuda_;
};

inline std::string name_of_case(const testing::TestParamInfo<Precision>& info) { return name_of(info.param); }

}  // namespace syncopate::worker
