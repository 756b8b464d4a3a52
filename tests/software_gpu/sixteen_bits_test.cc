// The software GPU's own: numbers of 16 bits in the libraries' calls.
#define CUDNN_DEPRECATED
#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cudnn.h>
#include <gmock/gmock.h>
#include <nccl.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/software_gpu/own_test.h"
#include "tests/software_gpu/settings.h"

namespace software_gpu {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class SixteenBits : public OwnTest {
 protected:
  SixteenBits() { cudaMalloc(reinterpret_cast<void**>(&memory_), 64); }
  ~SixteenBits() override { cudaFree(memory_); }

  // Puts them into the device's memory at a place of 16 bytes.
  void put(int place, const std::vector<float>& values) {
    auto* const numbers = reinterpret_cast<__nv_bfloat16*>(pinned_);
    std::transform(values.begin(), values.end(), numbers, __float2bfloat16_rn);
    cudaMemcpyAsync(at(place), numbers, values.size() * sizeof(*numbers), cudaMemcpyHostToDevice, one_);
    EXPECT_EQ(cudaStreamSynchronize(one_), cudaSuccess);
  }
  template <typename Number>
  std::vector<Number> get(int place, std::size_t count) {
    auto* const numbers = reinterpret_cast<Number*>(pinned_);
    cudaMemcpyAsync(numbers, at(place), count * sizeof(*numbers), cudaMemcpyDeviceToHost, one_);
    EXPECT_EQ(cudaStreamSynchronize(one_), cudaSuccess);
    return {numbers, numbers + count};
  }
  std::byte* at(int place) const { return memory_ + 16 * place; }

  std::byte* memory_ = nullptr;
};

// A row at place 0 times a column at place 1, column by column.
class ProductOf16Bits : public SixteenBits {
 protected:
  ProductOf16Bits() {
    put(0, {256, 1});
    put(1, {1, 1});
    cublasLtCreate(&handle_);
    cublasLtMatmulPreferenceCreate(&preference_);
    const std::uint32_t alignment = 16;
    for (const auto of : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      cublasLtMatmulPreferenceSetAttribute(preference_, of, &alignment, sizeof(alignment));
    }
  }
  ~ProductOf16Bits() override {
    cublasLtMatmulPreferenceDestroy(preference_);
    cublasLtDestroy(handle_);
  }

  struct Types {
    cudaDataType row = CUDA_R_16BF, column = CUDA_R_16BF, result = CUDA_R_16BF;
    cublasComputeType_t sums = CUBLAS_COMPUTE_32F;
  };
  // Returns the first error.
  cublasStatus_t multiply(const Types& types, void* result) {
    cublasLtMatmulDesc_t product{};
    cublasLtMatrixLayout_t row{}, column{}, one{};
    cublasLtMatmulDescCreate(&product, types.sums, CUDA_R_32F);
    cublasLtMatrixLayoutCreate(&row, types.row, 1, 2, 1);
    cublasLtMatrixLayoutCreate(&column, types.column, 2, 1, 2);
    cublasLtMatrixLayoutCreate(&one, types.result, 1, 1, 1);
    std::vector<cublasLtMatmulHeuristicResult_t> found(2);
    int count = 0;
    cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle_, product, row, column, one, one, preference_, 2, found.data(), &count);
    const float alpha = 1, beta = 0;
    if (status == CUBLAS_STATUS_SUCCESS) {
      status = cublasLtMatmul(handle_, product, &alpha, at(0), row, at(1), column, &beta, result, one, result, one,
                              &found[1].algo, nullptr, 0, one_);
    }
    for (cublasLtMatrixLayout_t layout : {row, column, one}) cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulDescDestroy(product);
    return status;
  }

  cublasLtHandle_t handle_{};
  cublasLtMatmulPreference_t preference_{};
};

TEST_F(ProductOf16Bits, IsAddedUpInFloatsAndThenRounded) {
  ASSERT_EQ(multiply({}, at(2)), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(__bfloat162float(get<__nv_bfloat16>(2, 1)[0]), 256) << "257 has no place in 8 bits";
  ASSERT_EQ(multiply({.result = CUDA_R_32F}, at(2)), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(get<float>(2, 1)[0], 257);
}

TEST_F(ProductOf16Bits, IsRefusedWhereTypesDoNotGoTogether) {
  for (const Types& types : {Types{.row = CUDA_R_32F}, Types{.column = CUDA_R_16F}, Types{.result = CUDA_R_16F},
                             Types{.sums = CUBLAS_COMPUTE_32F_FAST_TF32}}) {
    EXPECT_EQ(multiply(types, at(2)), CUBLAS_STATUS_NOT_SUPPORTED);
  }
  EXPECT_THAT(fault(), HasSubstr("types that do not go together"));
}

TEST_F(ProductOf16Bits, IsRefusedWhereAnOperandIsLessAlignedThanWasSaid) {
  EXPECT_EQ(multiply({}, at(2) + 2), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_THAT(fault(), HasSubstr("not aligned"));
}

// A convolution of one pixel.
class ConvolutionOf16Bits : public SixteenBits {
 protected:
  ConvolutionOf16Bits() {
    cudnnCreate(&handle_);
    cudnnSetStream(handle_, one_);
    cudnnCreateTensorDescriptor(&of_x_);
    cudnnCreateTensorDescriptor(&of_y_);
    cudnnCreateFilterDescriptor(&of_filter_);
    cudnnCreateConvolutionDescriptor(&convolution_);
    cudnnSetConvolution2dDescriptor(convolution_, 0, 0, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);
    put(0, {256, 1, 0, 0, 0, 0, 0, 0});
    put(1, {1, 1, 0, 0, 0, 0, 0, 0});
  }
  ~ConvolutionOf16Bits() override {
    cudnnDestroyConvolutionDescriptor(convolution_);
    cudnnDestroyFilterDescriptor(of_filter_);
    cudnnDestroyTensorDescriptor(of_y_);
    cudnnDestroyTensorDescriptor(of_x_);
    cudnnDestroy(handle_);
  }

  // An image at place 0 and a filter at place 1, of so many channels.
  cudnnStatus_t convolve(int channels, cudnnDataType_t type_of_y, cudnnMathType_t math, void* y) {
    cudnnSetTensor4dDescriptor(of_x_, CUDNN_TENSOR_NHWC, CUDNN_DATA_BFLOAT16, 1, channels, 1, 1);
    cudnnSetTensor4dDescriptor(of_y_, CUDNN_TENSOR_NHWC, type_of_y, 1, 1, 1, 1);
    cudnnSetFilter4dDescriptor(of_filter_, CUDNN_DATA_BFLOAT16, CUDNN_TENSOR_NHWC, 1, channels, 1, 1);
    cudnnSetConvolutionMathType(convolution_, math);
    const float one = 1, zero = 0;
    return cudnnConvolutionForward(handle_, &one, of_x_, at(0), of_filter_, at(1), convolution_,
                                   CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, nullptr, 0, &zero, of_y_, y);
  }

  cudnnHandle_t handle_{};
  cudnnTensorDescriptor_t of_x_{}, of_y_{};
  cudnnFilterDescriptor_t of_filter_{};
  cudnnConvolutionDescriptor_t convolution_{};
};

TEST_F(ConvolutionOf16Bits, IsAddedUpInFloatsAndThenRounded) {
  ASSERT_EQ(convolve(2, CUDNN_DATA_BFLOAT16, CUDNN_FMA_MATH, at(2)), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(__bfloat162float(get<__nv_bfloat16>(2, 1)[0]), 256) << "257 has no place in 8 bits";
}

TEST_F(ConvolutionOf16Bits, MayHaveNoTensorCoresForChannelsThatAreNoMultipleOf8) {
  const bool has_all = !settings().refuses_first_algorithm();
  EXPECT_EQ(convolve(2, CUDNN_DATA_BFLOAT16, CUDNN_TENSOR_OP_MATH, at(2)) == CUDNN_STATUS_SUCCESS, has_all);
}

TEST_F(ConvolutionOf16Bits, IsRefusedWhereTypesDoNotGoTogether) {
  EXPECT_EQ(convolve(2, CUDNN_DATA_HALF, CUDNN_FMA_MATH, at(2)), CUDNN_STATUS_BAD_PARAM);
  EXPECT_THAT(fault(), HasSubstr("types that do not go together"));
}

TEST_F(ConvolutionOf16Bits, IsRefusedWhereAnOperandIsNotAligned) {
  EXPECT_EQ(convolve(2, CUDNN_DATA_BFLOAT16, CUDNN_FMA_MATH, at(2) + 2), CUDNN_STATUS_BAD_PARAM);
  EXPECT_THAT(fault(), HasSubstr("does not begin at a multiple of 16 bytes"));
}

TEST_F(SixteenBits, GoThroughACollective) {
  put(0, {1, -2, 3.5f, 256});
  ncclUniqueId id{};
  ncclComm_t alone{};
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  ASSERT_EQ(ncclCommInitRankConfig(&alone, 1, id, 0, &config), ncclSuccess);
  EXPECT_EQ(ncclAllReduce(at(0), at(1), 4, ncclBfloat16, ncclAvg, alone, one_), ncclSuccess);
  std::vector<float> values;
  for (const __nv_bfloat16 number : get<__nv_bfloat16>(1, 4)) values.push_back(__bfloat162float(number));
  EXPECT_THAT(values, ElementsAre(1, -2, 3.5f, 256));
  EXPECT_EQ(ncclCommDestroy(alone), ncclSuccess);
}

}  // namespace
}  // namespace software_gpu
