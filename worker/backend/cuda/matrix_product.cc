#include "worker/backend/cuda/matrix_product.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "common/device/cuda/cuda_status.h"
#include "worker/backend/cuda/library_status.h"

namespace syncopate::worker {
namespace {

constexpr int kProposals = 16;

cudaDataType blas_type(ElementType type) {
  switch (type) {
    case ElementType::kBfloat16:
      return CUDA_R_16BF;
    case ElementType::kFloat16:
      return CUDA_R_16F;
    case ElementType::kFloat32:
      break;
  }
  return CUDA_R_32F;
}

// Sums are float32's, whatever the factors.
cublasComputeType_t compute_type(Precision precision) {
  return precision == Precision::kTf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

template <typename T>
Status set(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t attribute, T value) {
  return library_status(cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof(value)),
                        "cublasLtMatmulDescSetAttribute");
}

template <typename T>
Status set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute, T value) {
  return library_status(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof(value)),
                        "cublasLtMatmulPreferenceSetAttribute");
}

template <typename Layout>
Status make_layout(Layout& layout, cudaDataType type, int rows, int columns) {
  cublasLtMatrixLayout_t raw = nullptr;
  const cublasStatus_t result = cublasLtMatrixLayoutCreate(&raw, type, static_cast<std::uint64_t>(rows),
                                                           static_cast<std::uint64_t>(columns), rows);
  if (result == CUBLAS_STATUS_SUCCESS) layout.reset(raw);
  return library_status(result, "cublasLtMatrixLayoutCreate");
}

}  // namespace

Result<std::unique_ptr<MatrixProduct>> MatrixProduct::make(const CudaContext& context, const ProductSpec& spec,
                                                           const ProductOperands& operands) {
  std::unique_ptr<MatrixProduct> product(new MatrixProduct(context, spec));
  SYNCOPATE_RETURN_IF_ERROR(product->check(operands));
  SYNCOPATE_RETURN_IF_ERROR(product->describe());
  bool found = false;
  SYNCOPATE_RETURN_IF_ERROR(product->choose_algorithm(operands, found));
  if (!found) product.reset();
  return product;
}

Status MatrixProduct::describe() {
  cublasLtMatmulDesc_t raw = nullptr;
  SYNCOPATE_RETURN_IF_ERROR(library_status(cublasLtMatmulDescCreate(&raw, compute_type(context_.precision), CUDA_R_32F),
                                           "cublasLtMatmulDescCreate"));
  description_.reset(raw);
  const auto operation = [](bool transpose) { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; };
  SYNCOPATE_RETURN_IF_ERROR(set(raw, CUBLASLT_MATMUL_DESC_TRANSA, operation(spec_.transpose_a)));
  SYNCOPATE_RETURN_IF_ERROR(set(raw, CUBLASLT_MATMUL_DESC_TRANSB, operation(spec_.transpose_b)));
  SYNCOPATE_RETURN_IF_ERROR(set(raw, CUBLASLT_MATMUL_DESC_EPILOGUE, spec_.epilogue));
  const cudaDataType type = blas_type(context_.element_type());
  if (has_vector()) SYNCOPATE_RETURN_IF_ERROR(set(raw, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type));  // D's
  SYNCOPATE_RETURN_IF_ERROR(spec_.transpose_a ? make_layout(a_, type, spec_.inner, spec_.rows)
                                              : make_layout(a_, type, spec_.rows, spec_.inner));
  SYNCOPATE_RETURN_IF_ERROR(spec_.transpose_b ? make_layout(b_, type, spec_.columns, spec_.inner)
                                              : make_layout(b_, type, spec_.inner, spec_.columns));
  return make_layout(d_, type, spec_.rows, spec_.columns);
}

Status MatrixProduct::check(const ProductOperands& operands) const {
  return context_.check({operands.a, operands.b, operands.d, operands.vector});
}

Status MatrixProduct::make_preference(Preference& preference) const {
  cublasLtMatmulPreference_t raw = nullptr;
  SYNCOPATE_RETURN_IF_ERROR(library_status(cublasLtMatmulPreferenceCreate(&raw), "cublasLtMatmulPreferenceCreate"));
  preference.reset(raw);
  for (const auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    SYNCOPATE_RETURN_IF_ERROR(set(raw, attribute, kTensorAlignment));
  }
  return set(raw, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(context_.workspace.size()));
}

Status MatrixProduct::choose_algorithm(const ProductOperands& operands, bool& found) {
  found = false;
  Preference preference;
  SYNCOPATE_RETURN_IF_ERROR(make_preference(preference));
  // Proposals depend on the alignment of the vector's address, which is not read: that of the least aligned one is
  // told.
  SYNCOPATE_RETURN_IF_ERROR(set_vector(reinterpret_cast<const void*>(std::uintptr_t{kTensorAlignment})));
  std::array<cublasLtMatmulHeuristicResult_t, kProposals> proposals{};
  int count = 0;
  const cublasStatus_t result =
      cublasLtMatmulAlgoGetHeuristic(context_.blas, description_.get(), a_.get(), b_.get(), d_.get(), d_.get(),
                                     preference.get(), kProposals, proposals.data(), &count);
  if (result == CUBLAS_STATUS_NOT_SUPPORTED) return {};
  SYNCOPATE_RETURN_IF_ERROR(library_status(result, "cublasLtMatmulAlgoGetHeuristic"));
  SYNCOPATE_RETURN_IF_ERROR(set_vector(operands.vector.address()));
  for (int i = 0; i < count && !found; ++i) {
    if (proposals[i].state != CUBLAS_STATUS_SUCCESS) continue;
    algorithm_ = proposals[i].algo;
    found = multiply(operands, algorithm_) == CUBLAS_STATUS_SUCCESS;
    if (!found) forget_last_cuda_error();
  }
  return {};
}

Status MatrixProduct::set_vector(const void* vector) {
  if (!has_vector()) return {};
  return set(description_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector);
}

cublasStatus_t MatrixProduct::multiply(const ProductOperands& operands, const cublasLtMatmulAlgo_t& algorithm) {
  const float one = 1, zero = 0;  // D is not read where beta is zero
  return cublasLtMatmul(context_.blas, description_.get(), &one, operands.a.address(), a_.get(), operands.b.address(),
                        b_.get(), &zero, operands.d.address(), d_.get(), operands.d.address(), d_.get(), &algorithm,
                        context_.workspace.data(), context_.workspace.size(), context_.stream);
}

Status MatrixProduct::run(const ProductOperands& operands) {
  SYNCOPATE_RETURN_IF_ERROR(check(operands));
  SYNCOPATE_RETURN_IF_ERROR(set_vector(operands.vector.address()));
  return library_status(multiply(operands, algorithm_), "cublasLtMatmul");
}

}  // namespace syncopate::worker
