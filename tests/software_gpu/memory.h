// The device's memory, and what the host has pinned of its own.
//
// Device memory is a range of addresses that is closed to the host (mprotect): whoever touches it outside of work of a
// stream is killed, and named. It begins as NaNs, ends in a red zone, and stays closed once it is freed.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace software_gpu {

// While one lives, device memory opens to whoever touches it, as it does for work of streams: each live allocation when
// it is first touched. With the lock.
class OpenMemory {
 public:
  OpenMemory();
  ~OpenMemory();
  OpenMemory(const OpenMemory&) = delete;
  OpenMemory& operator=(const OpenMemory&) = delete;
};

// Fill with what no computation may use.
void spoil(void* memory, std::size_t bytes);

cudaError_t allocate(void** memory, std::size_t bytes);
cudaError_t release(void* memory);
// Returns how many bytes of a live allocation there are from an address on; 0: it is none of a device's.
std::size_t device_bytes_from(const void* memory);
std::size_t free_memory();

cudaError_t allocate_pinned(void** memory, std::size_t bytes);
cudaError_t release_pinned(void* memory);
cudaError_t pin(void* memory, std::size_t bytes);
cudaError_t unpin(void* memory);
bool is_pinned(const void* memory, std::size_t bytes);

// Finds faults: allocations that were not released.
void check_memory_at_end();

}  // namespace software_gpu
