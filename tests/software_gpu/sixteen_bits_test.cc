// The software GPU's own: numbers of 16 bits in the libraries' calls.
#include <cublasLt.h>
#include <cuda_bf16.h>
#include <gmock/gmock.h>
#include <nccl.h>

#include <algorithm>
#include <vector>

#include "tests/software_gpu/own_test.h"

namespace software_gpu {
namespace {

using testing::ElementsAre;

class SixteenBits : public OwnTest {
 protected:
  // Puts them into the device's memory at a place of 8 bytes.
  void put(int place, const std::vector<float>& values) {
    auto* const numbers = reinterpret_cast<__nv_bfloat16*>(pinned_);
    std::transform(values.begin(), values.end(), numbers, __float2bfloat16_rn);
    cudaMemcpyAsync(at(place), numbers, values.size() * sizeof(*numbers), cudaMemcpyHostToDevice, one_);
    EXPECT_EQ(cudaStreamSynchronize(one_), cudaSuccess);
  }
  std::vector<float> get(int place, std::size_t count) {
    auto* const numbers = reinterpret_cast<__nv_bfloat16*>(pinned_);
    cudaMemcpyAsync(numbers, at(place), count * sizeof(*numbers), cudaMemcpyDeviceToHost, one_);
    EXPECT_EQ(cudaStreamSynchronize(one_), cudaSuccess);
    std::vector<float> values(count);
    std::transform(numbers, numbers + count, values.begin(), __bfloat162float);
    return values;
  }
  void* at(int place) const { return device_ + 2 * place; }
};

TEST_F(SixteenBits, AreAddedUpAsFloatsInAProductAndThenRounded) {
  put(0, {256, 1});  // a row, column by column
  put(1, {1, 1});    // a column
  cublasLtHandle_t handle{};
  cublasLtMatmulDesc_t product{};
  cublasLtMatrixLayout_t row{}, column{}, one{}, one_float{};
  cublasLtMatmulPreference_t preference{};
  ASSERT_EQ(cublasLtCreate(&handle), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasLtMatrixLayoutCreate(&row, CUDA_R_16BF, 1, 2, 1), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasLtMatrixLayoutCreate(&column, CUDA_R_16BF, 2, 1, 2), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasLtMatrixLayoutCreate(&one, CUDA_R_16BF, 1, 1, 1), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasLtMatrixLayoutCreate(&one_float, CUDA_R_32F, 1, 1, 1), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasLtMatmulPreferenceCreate(&preference), CUBLAS_STATUS_SUCCESS);
  const float alpha = 1, beta = 0;
  for (cublasLtMatrixLayout_t result : {one, one_float}) {
    std::vector<cublasLtMatmulHeuristicResult_t> found(2);
    int count = 0;
    ASSERT_EQ(cublasLtMatmulAlgoGetHeuristic(handle, product, row, column, result, result, preference, 2, found.data(),
                                             &count),
              CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(count, 2);
    ASSERT_EQ(cublasLtMatmul(handle, product, &alpha, at(0), row, at(1), column, &beta, device_ + 3, result,
                             device_ + 3, result, &found[1].algo, nullptr, 0, one_),
              CUBLAS_STATUS_SUCCESS);
    if (result == one) EXPECT_EQ(get(1, 3)[2], 256) << "257 has no place in 8 bits";
  }
  cudaMemcpyAsync(pinned_, device_ + 3, sizeof(float), cudaMemcpyDeviceToHost, one_);
  ASSERT_EQ(cudaStreamSynchronize(one_), cudaSuccess);
  EXPECT_EQ(pinned_[0], 257);
  cublasLtMatmulPreferenceDestroy(preference);
  for (cublasLtMatrixLayout_t layout : {row, column, one, one_float}) cublasLtMatrixLayoutDestroy(layout);
  cublasLtMatmulDescDestroy(product);
  cublasLtDestroy(handle);
}

TEST_F(SixteenBits, GoThroughACollective) {
  put(0, {1, -2, 3.5f, 256});
  ncclUniqueId id{};
  ncclComm_t alone{};
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  ASSERT_EQ(ncclCommInitRankConfig(&alone, 1, id, 0, &config), ncclSuccess);
  EXPECT_EQ(ncclAllReduce(at(0), at(1), 4, ncclBfloat16, ncclAvg, alone, one_), ncclSuccess);
  EXPECT_THAT(get(1, 4), ElementsAre(1, -2, 3.5f, 256));
  EXPECT_EQ(ncclCommDestroy(alone), ncclSuccess);
}

}  // namespace
}  // namespace software_gpu
