// A convolution layer for one shape: cuDNN's products, with the bias and its gradient by our own kernels. These cost a
// pass over y each. cuDNN fuses them for few algorithms only, and is slow in adding to images whose channels are
// innermost.
#pragma once

#include <memory>

#include "common/status.h"
#include "worker/backend/compute_backend.h"
#include "worker/backend/cuda/cuda_context.h"
#include "worker/backend/cuda/cudnn_convolution.h"

namespace syncopate::worker {

class CudaConv {
 public:
  // The context must outlive it.
  CudaConv(const ConvShape& shape, CudaContext& context) : shape_(shape), context_(context) {}

  const ConvShape& shape() const { return shape_; }

  // As in ComputeBackend; failures are returned.
  Status forward(In x, In w, In b, Out y);
  Status backward(In x, In w, In dy, Out dw, Out db, Out dx);

 private:
  // Prepares what the first use needs.
  Status prepare();
  // The number of rows of y as a matrix of shape_.out columns.
  std::size_t output_pixels() const;

  ConvShape shape_;
  CudaContext& context_;
  std::unique_ptr<CudnnConvolution> convolution_;  // null before the first use
};

}  // namespace syncopate::worker
