// A dense layer's three matrix products for one shape by cuBLASLt, each prepared at its first use. Tensors are used in
// place: to cuBLAS a row-major tensor is its transpose, so each product is computed transposed.
//
//   forward   y = x · wᵀ + b     yᵀ(out, B)   = w(out, in) · xᵀ(in, B)
//   weights   dw = dyᵀ · x       dwᵀ(in, out) = xᵀ(in, B) · dy(B, out)
//   data      dx = dy · w        dxᵀ(in, B)   = wᵀ(in, out) · dyᵀ(out, B)
//
// Bias and ReLU, and the bias's gradient (the column sums of dy, which is the second factor of dwᵀ), are computed
// within the product if cuBLASLt has an algorithm for that, and otherwise by a kernel of our own beside it. This is
// decided once per shape, when the product is prepared.
#pragma once

#include <memory>

#include "common/status.h"
#include "worker/backend/compute_backend.h"
#include "worker/backend/cuda/cuda_context.h"
#include "worker/backend/cuda/matrix_product.h"

namespace syncopate::worker {

class CudaDense {
 public:
  // The context must outlive it.
  CudaDense(const DenseShape& shape, const CudaContext& context) : shape_(shape), context_(context) {}

  const DenseShape& shape() const { return shape_; }

  // As in ComputeBackend; failures are returned.
  Status forward(In x, In w, In b, Out y);
  Status backward(In x, In w, In dy, Out dw, Out db, Out dx);

 private:
  struct Operation {
    std::unique_ptr<MatrixProduct> product;  // null before the first use
    bool fused = false;                      // the vector is handled within the product
  };

  // Runs the operation; prepares it at the first use.
  Status run(Operation& operation, const ProductSpec& spec, const ProductOperands& operands, const char* name);
  // Prepares the operation by running it.
  Status prepare(Operation& operation, ProductSpec spec, const ProductOperands& operands, const char* name);

  DenseShape shape_;
  const CudaContext& context_;
  Operation forward_;
  Operation weights_;
  Operation data_;
};

}  // namespace syncopate::worker
