// What tests of the CUDA backend stand on: the backend in one precision, the oracle, and tensors on either side.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/common/cuda/gpu_test.h"
#include "tests/worker/tensor_helpers.h"
#include "worker/backend/cuda/cuda_backend.h"

namespace syncopate::worker {

// Returns how far a number may be from what is stored of it, relative to it: half a unit of the last place.
inline double rounding_of(Precision precision) {
  if (precision == Precision::kBf16) return 0x1p-8;
  return precision == Precision::kFp16 ? 0x1p-11 : 0;
}

// Returns the tolerance of products relative to the largest element of a result (and to 1), beside the rounding of
// what is stored. float32: sums here have up to 3000 terms. tf32: factors are rounded to 2^-11, or cut to 2^-10. 16
// bits: a bias that is added to a product that was stored.
inline double tolerance_of(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
      return 1e-5;
    case Precision::kTf32:
      return 6e-3;
    case Precision::kBf16:
    case Precision::kFp16:
      return 1e-5 + rounding_of(precision);
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
  Tensor rounded(const Tensor& host) {
    return cuda_->element_type() == ElementType::kFloat32 ? host : download(In(tensor_of(host)));
  }
  // Values that the type holds, so that both sides compute with the same.
  Tensor random_values(int count) { return rounded(random_tensor(count, random_)); }

  // What was computed in float32, within `tolerance` of the largest element, and then rounded once if it is of a type
  // of 16 bits. float16's smallest numbers are 2^-24 apart.
  void expect_close_on_device(In actual, const Tensor& expected, const char* what, double tolerance) {
    const bool is_rounded = actual.type() != ElementType::kFloat32;
    if (actual.type() == ElementType::kFloat16) tolerance += 0x1p-25;
    expect_close(download(actual), expected, tolerance, what, is_rounded ? rounding_of(GetParam()) : 0);
  }
  void expect_close_on_device(In actual, const Tensor& expected, const char* what) {
    expect_close_on_device(actual, expected, what, tolerance_of(GetParam()));
  }
  // The same bits, once the expected is rounded.
  void expect_equal_on_device(In actual, const Tensor& expected, const char* what) {
    EXPECT_EQ(download(actual), rounded(expected)) << what;
  }

  Random random_{7};
  std::unique_ptr<ComputeBackend> reference_ = make_reference_backend();
  std::unique_ptr<ComputeBackend> cuda_;
};

inline std::string name_of_case(const testing::TestParamInfo<Precision>& info) { return name_of(info.param); }

}  // namespace syncopate::worker
