#include "worker/backend/cuda/cuda_dense.h"

#include <fmt/format.h>

#include <utility>

#include "common/device/cuda/cuda_status.h"
#include "common/text/log.h"
#include "worker/backend/cuda/element_kernels.h"

namespace syncopate::worker {

Status CudaDense::forward(In x, In w, In b, Out y) {
  const ProductSpec spec{.rows = shape_.out,
                         .columns = shape_.batch,
                         .inner = shape_.in,
                         .transpose_a = true,
                         .epilogue = !shape_.bias  ? CUBLASLT_EPILOGUE_DEFAULT
                                     : shape_.relu ? CUBLASLT_EPILOGUE_RELU_BIAS
                                                   : CUBLASLT_EPILOGUE_BIAS};
  SYNCOPATE_RETURN_IF_ERROR(run(forward_, spec, {w, x, y, b}, "forward"));
  if (forward_.fused || !shape_.bias) return {};
  return cuda_status(launch_add_bias(y, b, shape_.batch, shape_.out, shape_.relu, context_.stream), "add_bias");
}

Status CudaDense::backward(In x, In w, In dy, Out dw, Out db, Out dx) {
  const ProductSpec weights{.rows = shape_.in,
                            .columns = shape_.out,
                            .inner = shape_.batch,
                            .transpose_b = true,
                            .epilogue = shape_.bias ? CUBLASLT_EPILOGUE_BGRADB : CUBLASLT_EPILOGUE_DEFAULT};
  SYNCOPATE_RETURN_IF_ERROR(run(weights_, weights, {x, dy, dw, db}, "weights' gradient"));
  if (shape_.bias && !weights_.fused) {
    SYNCOPATE_RETURN_IF_ERROR(cuda_status(
        launch_column_sums(dy, shape_.batch, shape_.out, db, context_.fold, context_.stream), "column_sums"));
  }
  if (dx.empty()) return {};
  const ProductSpec data{.rows = shape_.in, .columns = shape_.batch, .inner = shape_.out};
  return run(data_, data, {w, dy, dx}, "input's gradient");
}

Status CudaDense::run(Operation& operation, const ProductSpec& spec, const ProductOperands& operands,
                      const char* name) {
  if (operation.product) return operation.product->run(operands);
  return prepare(operation, spec, operands, name);
}

Status CudaDense::prepare(Operation& operation, ProductSpec spec, const ProductOperands& operands, const char* name) {
  const std::string what = fmt::format("dense layer {} x {} -> {}, {}, {}", shape_.batch, shape_.in, shape_.out, name,
                                       name_of(context_.precision));
  operation.fused = spec.epilogue != CUBLASLT_EPILOGUE_DEFAULT;
  Result<std::unique_ptr<MatrixProduct>> product = MatrixProduct::make(context_, spec, operands);
  if (product.ok() && *product == nullptr && operation.fused) {
    log_debug("{}: cuBLASLt has no algorithm that takes care of the bias; a kernel of its own does", what);
    operation.fused = false;
    spec.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    product = MatrixProduct::make(context_, spec, operands);
  }
  if (!product.ok()) return product.status().in(what);
  if (*product == nullptr) return Status::internal(what + ": cuBLASLt has no algorithm for it");
  operation.product = std::move(*product);
  return {};
}

}  // namespace syncopate::worker
