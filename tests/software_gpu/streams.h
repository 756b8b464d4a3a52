// Streams and events. What is given to a stream is done in its order; which stream goes on is drawn. Nothing is done
// before somebody waits or asks, or for some milliseconds: work is as late as it may be.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <string>

namespace software_gpu {

// A piece of work. Returns false if it cannot end yet: it waits for an event, or for another rank. Runs with the lock
// and with device memory open.
using Work = std::function<bool()>;

// Fails, and finds a fault, unless the stream is there and is one of this thread's device.
cudaError_t check_stream(cudaStream_t stream);
void give(cudaStream_t stream, std::string name, Work work);
// A function of the host's, which runs on a thread of its own, without the lock.
void give_host_function(cudaStream_t stream, std::function<void()> function);

cudaError_t create_stream(cudaStream_t* stream);
cudaError_t destroy_stream(cudaStream_t stream);
// Stands for cudaStreamLegacy, which is made when it is first used.
cudaStream_t legacy_stream();

cudaError_t create_event(cudaEvent_t* event);
cudaError_t destroy_event(cudaEvent_t event);
cudaError_t record_event(cudaEvent_t event, cudaStream_t stream);
cudaError_t wait_for_event(cudaStream_t stream, cudaEvent_t event);
cudaError_t query_event(cudaEvent_t event);
cudaError_t time_between(float* milliseconds, cudaEvent_t first, cudaEvent_t second);

// Does up to so many pieces of work. With the lock. Returns whether there was one that could be done.
bool do_some(int pieces);
// Wait until a stream, or all of them, have done what they were given.
cudaError_t wait_for_stream(cudaStream_t stream);
cudaError_t wait_for_all();

// Finds faults: streams and events that were not destroyed. Nothing is done behind it.
void check_streams_at_end();

}  // namespace software_gpu
