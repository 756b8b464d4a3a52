// MatrixProduct: one matrix product by cuBLASLt, whose algorithm is chosen once.
#pragma once

#include <cublasLt.h>

#include <memory>

#include "common/status.h"
#include "common/tensor_span.h"
#include "worker/backend/cuda/cuda_context.h"
#include "worker/backend/cuda/owned_handle.h"

namespace syncopate::worker {

// D = op(A) · op(B), summed in float32, with matrices of the context's type of tensors, in cuBLAS's terms: column-major
// and packed, so that a row-major tensor (r, c) is a column-major matrix of c rows and r columns. op(A) is (rows,
// inner), op(B) is (inner, columns).
struct ProductSpec {
  int rows = 0, columns = 0, inner = 0;
  bool transpose_a = false;  // A is stored as (inner, rows)
  bool transpose_b = false;  // B is stored as (columns, inner)
  // BIAS and RELU_BIAS add a vector of `rows` elements to every column of D. BGRADB writes the sums of op(B) over
  // `inner`, a vector of `columns` elements (cublasLt.h, cublasLtEpilogue_t).
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
};

// Tensors as CudaContext::check wants them.
struct ProductOperands {
  ConstTensorSpan a, b;
  TensorSpan d;
  ConstTensorSpan vector = {};  // for the epilogue, which writes it under BGRADB
};

class MatrixProduct {
 public:
  // Uses the first algorithm that cuBLASLt proposes and also accepts to run; so this enqueues the product of `operands`
  // on the stream. Returns null if there is none for this epilogue.
  static Result<std::unique_ptr<MatrixProduct>> make(const CudaContext& context, const ProductSpec& spec,
                                                     const ProductOperands& operands);

  Status run(const ProductOperands& operands);

 private:
  using Description = OwnedHandle<cublasLtMatmulDescOpaque_t, cublasLtMatmulDescDestroy>;
  using Layout = OwnedHandle<cublasLtMatrixLayoutOpaque_t, cublasLtMatrixLayoutDestroy>;
  using Preference = OwnedHandle<cublasLtMatmulPreferenceOpaque_t, cublasLtMatmulPreferenceDestroy>;

  MatrixProduct(const CudaContext& context, const ProductSpec& spec) : context_(context), spec_(spec) {}

  bool has_vector() const { return spec_.epilogue != CUBLASLT_EPILOGUE_DEFAULT; }
  Status describe();
  Status make_preference(Preference& preference) const;
  Status choose_algorithm(const ProductOperands& operands, bool& found);
  cublasStatus_t multiply(const ProductOperands& operands, const cublasLtMatmulAlgo_t& algorithm);
  Status check(const ProductOperands& operands) const;
  Status set_vector(const void* vector);

  const CudaContext& context_;
  ProductSpec spec_;
  Description description_;
  Layout a_, b_, d_;
  cublasLtMatmulAlgo_t algorithm_{};
};

}  // namespace syncopate::worker
