// Streams and events. What is given to a stream is done in its order; which stream goes on is drawn. Nothing is done
// before somebody waits or asks, or for some milliseconds: work is as late as it may be. What is given to a stream that
// captures is not done: it becomes a node of the capture's graph.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <string>

#include "tests/software_gpu/graphs.h"
#include "tests/software_gpu/work.h"

namespace software_gpu {

// Fails unless the stream is there, is one of this thread's device, and captures nothing that was made invalid. The
// first two find a fault.
cudaError_t check_stream(cudaStream_t stream);
void give(cudaStream_t stream, std::string name, std::function<void()> work);
// `is_awaited`: a function that somebody waits to be called, so that the work before it does not wait any longer.
void give_made(cudaStream_t stream, std::string name, Make make, bool is_awaited = false);

// Stands for cudaStreamLegacy, which is made when it is first used.
cudaStream_t legacy_stream();

cudaError_t begin_capture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t end_capture(cudaStream_t stream, std::shared_ptr<const Graph>& graph);
// Null: the stream captures nothing.
std::shared_ptr<Capture> capture_of(cudaStream_t stream);

// Does up to so many pieces of work. With the lock. Returns whether there was one that could be done.
bool do_some(int pieces);
// Wait until a stream, or all of them, have done what they were given. Without the lock.
cudaError_t wait_for_stream(cudaStream_t stream);
cudaError_t wait_for_all();

// Finds faults: streams and events that were not destroyed. Nothing is done behind it.
void check_streams_at_end();

}  // namespace software_gpu
