// The ComputeBackend of a GPU: cuBLASLt for dense layers, cuDNN for convolutions, our own kernels for the rest.
//
// Results are reproducible: the same GPU, libraries and shapes give the same bits. Our kernels sum in an order that
// depends only on the shape, cuBLAS promises reproducibility for work of one stream (its guide, "Results
// reproducibility"), and only deterministic algorithms of cuDNN are used.
#pragma once

#include <memory>

#include "common/device/device.h"
#include "common/status.h"
#include "worker/backend/compute_backend.h"
#include "worker/backend/precision.h"

namespace syncopate::worker {

// Enqueues all work on device.compute(). `device` must come from open_cuda_device, outlive the backend, be used by the
// same thread, and stay that thread's current GPU. The first use of a shape chooses the libraries' algorithms for it
// and keeps them, which takes milliseconds, so a model's first step is slow.
//
// Tensors must begin at multiples of 16 bytes, as all memory allocated here and every tensor of a ParamLayout does. A
// dense layer fails for others.
Result<std::unique_ptr<ComputeBackend>> make_cuda_backend(Device& device, Precision precision);

}  // namespace syncopate::worker
