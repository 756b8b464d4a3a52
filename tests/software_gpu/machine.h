// The machine that all files of the software GPU share: one lock, one source of what is drawn, what was found wrong,
// and the calls that were counted.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <random>
#include <string>

#include "tests/software_gpu/settings.h"

namespace software_gpu {

// Held by whoever looks at or changes anything of the machine. Work of streams runs under it, so that one piece runs at
// a time, but for functions of the host.
std::recursive_mutex& machine_lock();

std::mt19937_64& dice();
std::uint64_t draw(std::uint64_t below);  // 0 if `below` is
// Puts what may go on, and stands in the order in which it came, into the order in which it is to be tried.
template <typename Range>
void arrange(Range& range) {
  if (settings().order == Order::kDrawn) std::ranges::shuffle(range, dice());
  if (settings().order == Order::kLast) std::ranges::reverse(range);
}

// A fault of the program that uses the GPU. In a test of GoogleTest's it fails the test (finding_listener.cc); any
// other program says it and ends with SIGABRT.
void find_fault(const std::string& text);
// From now on the program ends: a fault ends it with SIGABRT, since no test can fail any more.
void expect_the_end();

// Counts a call, for SOFTWARE_GPU_COUNTS.
void count(const std::string& call, std::uint64_t bytes = 0);

// The error that all calls report from some failure on, as after an ECC error; cudaSuccess until then.
cudaError_t sticky_error();
void fail_for_good(cudaError_t error);
// Remembers it as the thread's last error (cudaGetLastError), and returns it.
cudaError_t remember(cudaError_t error);

int device_of_thread();

}  // namespace software_gpu

// The program that is tested has it if it wants to know of faults.
extern "C" __attribute__((weak)) void software_gpu_found(const char* fault);
