// CudnnConvolution: the three products of a convolution for one shape by cuDNN, on tensors in place: images (batch,
// height, width, channels), weights (out, kernel height, kernel width, in), which cuDNN calls NHWC for both.
//
// Tensors are of the context's type; those of 16 bits are multiplied exactly, and summed in float32 (cuDNN's
// PSEUDO_BFLOAT16_CONFIG and PSEUDO_HALF_CONFIG).
//
// The first use of each product chooses among the algorithms that cuDNN proposes, fastest first. It takes the first
// that is deterministic, fits in the workspace (which grows if none fits), computes in at least the requested
// precision, and is accepted when it is run: that cuDNN proposes an algorithm does not mean that it has it for this
// layout.
#pragma once

#include <cudnn.h>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "common/status.h"
#include "worker/backend/compute_backend.h"
#include "worker/backend/cuda/cuda_context.h"
#include "worker/backend/cuda/owned_handle.h"

namespace syncopate::worker {

enum class ConvProduct {
  kForward,          // y from x and w
  kWeightsGradient,  // dw from x and dy
  kInputGradient,    // dx from w and dy
};

class CudnnConvolution {
 public:
  // The context must outlive it.
  static Result<std::unique_ptr<CudnnConvolution>> make(const ConvShape& shape, CudaContext& context);

  // Computes `result` from `first` and `second`, in the order in which ConvProduct names them. Overwrites `result`.
  Status run(ConvProduct product, In first, In second, Out result);

 private:
  // `algorithm` is a value of the product's own enumeration.
  struct Candidate {
    int algorithm;
    cudnnMathType_t math;
  };
  struct Operation {
    OwnedHandle<cudnnConvolutionStruct, cudnnDestroyConvolutionDescriptor> convolution;
    std::optional<int> algorithm;  // chosen at the first use
  };

  CudnnConvolution(const ConvShape& shape, CudaContext& context) : shape_(shape), context_(context) {}

  Status describe();
  Status describe(Operation& operation) const;
  Operation& operation(ConvProduct product) { return operations_[static_cast<std::size_t>(product)]; }
  // Runs one candidate after another, and keeps the first that is accepted.
  Status choose(ConvProduct product, In first, In second, Out result);
  // What cuDNN proposes, followed by the algorithms that it has had since its first version, at last without tensor
  // cores, which need not take every number of channels.
  std::vector<Candidate> candidates(ConvProduct product) const;
  std::vector<Candidate> proposals(ConvProduct product) const;
  cudnnStatus_t workspace_size(ConvProduct product, int algorithm, std::size_t& bytes) const;
  cudnnStatus_t launch(ConvProduct product, int algorithm, In first, In second, Out result) const;
  cudnnConvolutionDescriptor_t convolution(ConvProduct product) const {
    return operations_[static_cast<std::size_t>(product)].convolution.get();
  }

  ConvShape shape_;
  CudaContext& context_;
  OwnedHandle<cudnnTensorStruct, cudnnDestroyTensorDescriptor> x_, y_;
  OwnedHandle<cudnnFilterStruct, cudnnDestroyFilterDescriptor> w_;
  std::array<Operation, 3> operations_;
};

}  // namespace syncopate::worker
