#include "worker/backend/cuda/cudnn_convolution.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "common/device/cuda/cuda_status.h"
#include "worker/backend/cuda/library_status.h"

namespace syncopate::worker {
namespace {

const char* name_of(ConvProduct product) {
  switch (product) {
    case ConvProduct::kForward:
      return "forward";
    case ConvProduct::kWeightsGradient:
      return "weights' gradient";
    case ConvProduct::kInputGradient:
      return "input's gradient";
  }
  return "unknown";
}

cudnnDataType_t dnn_type(ElementType type) {
  switch (type) {
    case ElementType::kBfloat16:
      return CUDNN_DATA_BFLOAT16;
    case ElementType::kFloat16:
      return CUDNN_DATA_HALF;
    case ElementType::kFloat32:
      break;
  }
  return CUDNN_DATA_FLOAT;
}

// What proposals are asked for with. CUDNN_FMA_MATH forbids tensor cores, and so all rounding of factors; by default
// they may round them to TF32; CUDNN_TENSOR_OP_MATH permits them for factors as they are (cuDNN API reference,
// cudnnMathType_t).
cudnnMathType_t math_of(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
      return CUDNN_FMA_MATH;
    case Precision::kTf32:
      return CUDNN_DEFAULT_MATH;
    case Precision::kBf16:
    case Precision::kFp16:
      break;
  }
  return CUDNN_TENSOR_OP_MATH;
}

// CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION rounds factors to float16, which nobody has asked for.
bool admissible(cudnnMathType_t math) { return math != CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION; }

template <typename Create, typename Owned>
Status create(Create create, Owned& owned, const char* call) {
  typename Owned::pointer raw = nullptr;
  const cudnnStatus_t result = create(&raw);
  if (result == CUDNN_STATUS_SUCCESS) owned.reset(raw);
  return library_status(result, call);
}

constexpr int kMostProposals = 32;

}  // namespace

Result<std::unique_ptr<CudnnConvolution>> CudnnConvolution::make(const ConvShape& shape, CudaContext& context) {
  std::unique_ptr<CudnnConvolution> convolution(new CudnnConvolution(shape, context));
  SYNCOPATE_RETURN_IF_ERROR(convolution->describe());
  return convolution;
}

Status CudnnConvolution::describe() {
  SYNCOPATE_RETURN_IF_ERROR(create(cudnnCreateTensorDescriptor, x_, "cudnnCreateTensorDescriptor"));
  SYNCOPATE_RETURN_IF_ERROR(create(cudnnCreateTensorDescriptor, y_, "cudnnCreateTensorDescriptor"));
  SYNCOPATE_RETURN_IF_ERROR(create(cudnnCreateFilterDescriptor, w_, "cudnnCreateFilterDescriptor"));
  const cudnnDataType_t type = dnn_type(context_.element_type());
  SYNCOPATE_RETURN_IF_ERROR(library_status(cudnnSetTensor4dDescriptor(x_.get(), CUDNN_TENSOR_NHWC, type, shape_.batch,
                                                                      shape_.in, shape_.height, shape_.width),
                                           "cudnnSetTensor4dDescriptor"));
  SYNCOPATE_RETURN_IF_ERROR(
      library_status(cudnnSetTensor4dDescriptor(y_.get(), CUDNN_TENSOR_NHWC, type, shape_.batch, shape_.out,
                                                shape_.out_height(), shape_.out_width()),
                     "cudnnSetTensor4dDescriptor"));
  SYNCOPATE_RETURN_IF_ERROR(library_status(cudnnSetFilter4dDescriptor(w_.get(), type, CUDNN_TENSOR_NHWC, shape_.out,
                                                                      shape_.in, shape_.kernel, shape_.kernel),
                                           "cudnnSetFilter4dDescriptor"));
  for (Operation& operation : operations_) SYNCOPATE_RETURN_IF_ERROR(describe(operation));
  return {};
}

Status CudnnConvolution::describe(Operation& operation) const {
  SYNCOPATE_RETURN_IF_ERROR(
      create(cudnnCreateConvolutionDescriptor, operation.convolution, "cudnnCreateConvolutionDescriptor"));
  const cudnnConvolutionDescriptor_t raw = operation.convolution.get();
  SYNCOPATE_RETURN_IF_ERROR(
      library_status(cudnnSetConvolution2dDescriptor(raw, shape_.padding, shape_.padding, shape_.stride, shape_.stride,
                                                     1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
                     "cudnnSetConvolution2dDescriptor"));  // sums are float32's, whatever the factors
  return library_status(cudnnSetConvolutionMathType(raw, math_of(context_.precision)), "cudnnSetConvolutionMathType");
}

Status CudnnConvolution::run(ConvProduct product, In first, In second, Out result) {
  SYNCOPATE_RETURN_IF_ERROR(context_.check({first, second, result}));
  if (const std::optional<int> algorithm = operation(product).algorithm) {
    return library_status(launch(product, *algorithm, first, second, result), name_of(product));
  }
  return choose(product, first, second, result);
}

Status CudnnConvolution::choose(ConvProduct product, In first, In second, Out result) {
  cudnnStatus_t last = CUDNN_STATUS_NOT_SUPPORTED;
  std::size_t least = std::numeric_limits<std::size_t>::max();  // bytes that a candidate wants which has no room
  for (const Candidate& candidate : candidates(product)) {
    std::size_t bytes = 0;
    last = cudnnSetConvolutionMathType(convolution(product), candidate.math);
    if (last == CUDNN_STATUS_SUCCESS) last = workspace_size(product, candidate.algorithm, bytes);
    if (last != CUDNN_STATUS_SUCCESS) continue;
    if (bytes > context_.workspace.size()) {
      least = std::min(least, bytes);
      continue;
    }
    last = launch(product, candidate.algorithm, first, second, result);
    if (last == CUDNN_STATUS_SUCCESS) {
      operation(product).algorithm = candidate.algorithm;
      return {};
    }
    forget_last_cuda_error();
  }
  if (least != std::numeric_limits<std::size_t>::max()) {
    SYNCOPATE_RETURN_IF_ERROR(context_.reserve(least));
    return choose(product, first, second, result);
  }
  return Status::internal(
      fmt::format("convolution {} x {}x{}x{} -> {}, kernel {}, stride {}, padding {}, {}, {}: cuDNN has no "
                  "deterministic algorithm ({}){}",
                  shape_.batch, shape_.height, shape_.width, shape_.in, shape_.out, shape_.kernel, shape_.stride,
                  shape_.padding, name_of(product), name_of(context_.precision), cudnnGetErrorString(last),
                  context_.element_type() == ElementType::kFloat32 ? "" : "; it may have one with --precision=tf32"));
}

std::vector<CudnnConvolution::Candidate> CudnnConvolution::candidates(ConvProduct product) const {
  std::vector<Candidate> all = proposals(product);
  for (const cudnnMathType_t math : {math_of(context_.precision), CUDNN_FMA_MATH}) {
    switch (product) {
      case ConvProduct::kForward:
        all.push_back({CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, math});
        all.push_back({CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, math});
        break;
      case ConvProduct::kWeightsGradient:
        all.push_back({CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, math});
        break;
      case ConvProduct::kInputGradient:
        all.push_back({CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, math});
        break;
    }
  }
  return all;
}

std::vector<CudnnConvolution::Candidate> CudnnConvolution::proposals(ConvProduct product) const {
  std::vector<Candidate> kept;
  // Asks, and keeps what will do. The three products have a type each for what they propose.
  const auto ask = [&]<typename Proposal>(Proposal /*type*/, auto get, auto first, auto second, auto result) {
    std::array<Proposal, kMostProposals> proposals{};
    int count = 0;
    if (get(context_.dnn, first, second, convolution(product), result, kMostProposals, &count, proposals.data()) !=
        CUDNN_STATUS_SUCCESS) {
      return;
    }
    for (int i = 0; i < count; ++i) {
      const Proposal& proposal = proposals[static_cast<std::size_t>(i)];
      if (proposal.status == CUDNN_STATUS_SUCCESS && proposal.determinism == CUDNN_DETERMINISTIC &&
          admissible(proposal.mathType)) {
        const bool exact = context_.precision == Precision::kFp32;
        kept.push_back({static_cast<int>(proposal.algo), exact ? CUDNN_FMA_MATH : proposal.mathType});
      }
    }
  };
  switch (product) {
    case ConvProduct::kForward:
      // The order of arguments is x, w, convolution, y.
      ask(cudnnConvolutionFwdAlgoPerf_t{}, cudnnGetConvolutionForwardAlgorithm_v7, x_.get(), w_.get(), y_.get());
      break;
    case ConvProduct::kWeightsGradient:
      ask(cudnnConvolutionBwdFilterAlgoPerf_t{}, cudnnGetConvolutionBackwardFilterAlgorithm_v7, x_.get(), y_.get(),
          w_.get());
      break;
    case ConvProduct::kInputGradient:
      ask(cudnnConvolutionBwdDataAlgoPerf_t{}, cudnnGetConvolutionBackwardDataAlgorithm_v7, w_.get(), y_.get(),
          x_.get());
      break;
  }
  return kept;
}

cudnnStatus_t CudnnConvolution::workspace_size(ConvProduct product, int algorithm, std::size_t& bytes) const {
  switch (product) {
    case ConvProduct::kForward:
      return cudnnGetConvolutionForwardWorkspaceSize(context_.dnn, x_.get(), w_.get(), convolution(product), y_.get(),
                                                     static_cast<cudnnConvolutionFwdAlgo_t>(algorithm), &bytes);
    case ConvProduct::kWeightsGradient:
      return cudnnGetConvolutionBackwardFilterWorkspaceSize(
          context_.dnn, x_.get(), y_.get(), convolution(product), w_.get(),
          static_cast<cudnnConvolutionBwdFilterAlgo_t>(algorithm), &bytes);
    case ConvProduct::kInputGradient:
      return cudnnGetConvolutionBackwardDataWorkspaceSize(
          context_.dnn, w_.get(), y_.get(), convolution(product), x_.get(),
          static_cast<cudnnConvolutionBwdDataAlgo_t>(algorithm), &bytes);
  }
  return CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t CudnnConvolution::launch(ConvProduct product, int algorithm, In first, In second, Out result) const {
  const float one = 1, zero = 0;  // the result is not read where beta is zero
  void* const workspace = context_.workspace.data();
  const std::size_t bytes = context_.workspace.size();
  switch (product) {
    case ConvProduct::kForward:
      return cudnnConvolutionForward(context_.dnn, &one, x_.get(), first.address(), w_.get(), second.address(),
                                     convolution(product), static_cast<cudnnConvolutionFwdAlgo_t>(algorithm), workspace,
                                     bytes, &zero, y_.get(), result.address());
    case ConvProduct::kWeightsGradient:
      return cudnnConvolutionBackwardFilter(
          context_.dnn, &one, x_.get(), first.address(), y_.get(), second.address(), convolution(product),
          static_cast<cudnnConvolutionBwdFilterAlgo_t>(algorithm), workspace, bytes, &zero, w_.get(), result.address());
    case ConvProduct::kInputGradient:
      return cudnnConvolutionBackwardData(context_.dnn, &one, w_.get(), first.address(), y_.get(), second.address(),
                                          convolution(product), static_cast<cudnnConvolutionBwdDataAlgo_t>(algorithm),
                                          workspace, bytes, &zero, x_.get(), result.address());
  }
  return CUDNN_STATUS_BAD_PARAM;
}

}  // namespace syncopate::worker
