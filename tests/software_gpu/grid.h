// A grid of a kernel: its blocks one after the other, each with its threads as fibers that meet at barriers.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <string>

// What CUDA shows the thread that runs.
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

namespace software_gpu {

struct Launch {
  std::string name;  // of the kernel, with the file and line that launch it
  dim3 grid, block;
  bool flushes_denormals = false;
  std::function<void()> body;  // of a thread
};

// Gives the kernel to a stream. Fails, and finds a fault, for a grid or a block that no GPU takes.
cudaError_t launch(Launch launch, cudaStream_t stream);

// Memory that threads of a block share, between two addresses: spoilt before each block.
void register_shared(char* begin, char* end);

// Called by threads. Both find a fault where threads of the block, or lanes of the warp, do not all come to it.
void meet_block(int line);
unsigned exchange_in_warp(unsigned value, int distance, int line);

}  // namespace software_gpu
