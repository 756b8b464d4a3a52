// A dense layer's three matrix products for one shape by cuBLASLt, each made ready at its first use. Tensors are used
// as they lie: a row-major tensor is its transpose to cuBLAS, so each product is computed transposed.
//
//   forward   y = x · wᵀ + b     yᵀ(out, B)   = w(out, in) · xᵀ(in, B)
//   weights   dw = dyᵀ · x       dwᵀ(in, out) = xᵀ(in, B) · dy(B, out)
//   data      dx = dy · w        dxᵀ(in, B)   = wᵀ(in, out) · dyᵀ(out, B)
//
// Bias and ReLU, and the bias's gradient (the column sums of dy, which is the second factor of dwᵀ), are made within
// the product where cuBLASLt has an algorithm for that, and by a kernel of our own beside it where it has none. Which
// of the two is decided when the product is made ready, once for a shape.
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

  // As in ComputeBackend; what fails is returned.
  Status forward(In x, In w, In b, Out y);
  Status backward(In x, In w, In dy, Out dw, Out db, Out dx);

 private:
  struct Operation {
    std::unique_ptr<MatrixProduct> product;  // null before the first use
    bool fused = false;                      // the vector is taken care of within the product
  };

  // Runs the operation; makes it ready at the first use.
  Status run(Operation& operation, const ProductSpec& spec, const ProductOperands& operands, const char* name);
  // Makes it ready by running it.
  Status prepare(Operation& operation, ProductSpec spec, const ProductOperands& operands, const char* name);

  DenseShape shape_;
  const CudaContext& context_;
  Operation forward_;
  Operation weights_;
  Operation data_;
};

}  // namespace syncopate::worker
