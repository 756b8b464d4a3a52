// A GPU as a Device, over the CUDA runtime.
#pragma once

#include <memory>

#include "common/device/device.h"
#include "common/status.h"

namespace syncopate {

// GPU `index`, from 0, of those that find_gpus() finds. Not found where it is not there, or where this program holds no
// code for it. Fails also where CUDA refuses: another process may hold the GPU for itself, or the driver be too old.
//
// The GPU becomes the calling thread's current one, which CUDA's libraries go by: the device is to be used by this
// thread. What the device does itself does not need that.
//
// A device ends when all work given to it is done. Work that cannot be done, a collective's with a lost peer, must have
// been given up before.
Result<std::unique_ptr<Device>> open_cuda_device(int index);

}  // namespace syncopate
