// A GPU as a Device, using the CUDA runtime.
#pragma once

#include <memory>

#include "common/device/device.h"
#include "common/status.h"

namespace syncopate {

// Opens GPU `index`, from 0, of those that find_gpus() returns. Fails with not found if it does not exist, or if this
// program contains no code for it. Also fails if CUDA refuses: another process may hold the GPU exclusively, or the
// driver may be too old.
//
// The GPU becomes the calling thread's current one, which CUDA's libraries use; so this thread must use the device. The
// device's own functions do not need that.
//
// Destroying the device waits until all work enqueued on it is done. Work that cannot be done, such as a collective
// with a lost peer, must have been aborted before.
Result<std::unique_ptr<Device>> open_cuda_device(int index);

}  // namespace syncopate
