// The ComputeBackend of a GPU: cuBLASLt for dense layers, cuDNN for convolutions, kernels of our own for the rest.
//
// Results are reproducible: the same GPU, libraries and shapes give the same bits. Our kernels sum in an order that
// depends on the shape alone, cuBLAS promises it for work of one stream (its guide, "Results reproducibility"), and of
// cuDNN's algorithms only deterministic ones are taken.
#pragma once

#include <memory>

#include "common/device/device.h"
#include "common/status.h"
#include "worker/backend/compute_backend.h"
#include "worker/backend/precision.h"

namespace syncopate::worker {

// All work is given to device.compute(). `device` is one that open_cuda_device has made; it must outlive the backend,
// be used by the same thread, and stay that thread's current GPU. The first use of a shape chooses the libraries'
// algorithms for it and keeps them, which takes milliseconds; so a model's first step is slow.
//
// Tensors begin at multiples of 16 bytes, as whatever is allocated here and every tensor of a ParamLayout does; a dense
// layer is refused others.
Result<std::unique_ptr<ComputeBackend>> make_cuda_backend(Device& device, Precision precision);

}  // namespace syncopate::worker
