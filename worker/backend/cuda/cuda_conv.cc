#include "worker/backend/cuda/cuda_conv.h"

#include <utility>

#include "common/device/cuda/cuda_status.h"
#include "worker/backend/cuda/element_kernels.h"

namespace syncopate::worker {

Status CudaConv::prepare() {
  if (convolution_) return {};
  Result<std::unique_ptr<CudnnConvolution>> made = CudnnConvolution::make(shape_, context_);
  if (made.ok()) convolution_ = std::move(*made);
  return made.status();
}

std::size_t CudaConv::output_pixels() const {
  return static_cast<std::size_t>(shape_.batch) * shape_.out_height() * shape_.out_width();
}

Status CudaConv::forward(In x, In w, In b, Out y) {
  SYNCOPATE_RETURN_IF_ERROR(prepare());
  SYNCOPATE_RETURN_IF_ERROR(convolution_->run(ConvProduct::kForward, x, w, y));
  if (!shape_.bias) return {};
  return cuda_status(launch_add_bias(y, b, output_pixels(), shape_.out, false, context_.stream), "add_bias");
}

Status CudaConv::backward(In x, In w, In dy, Out dw, Out db, Out dx) {
  SYNCOPATE_RETURN_IF_ERROR(prepare());
  SYNCOPATE_RETURN_IF_ERROR(convolution_->run(ConvProduct::kWeightsGradient, x, dy, dw));
  if (shape_.bias) {
    SYNCOPATE_RETURN_IF_ERROR(cuda_status(
        launch_column_sums(dy, output_pixels(), shape_.out, db, context_.fold, context_.stream), "column_sums"));
  }
  if (dx.empty()) return {};
  return convolution_->run(ConvProduct::kInputGradient, w, dy, dx);
}

}  // namespace syncopate::worker
