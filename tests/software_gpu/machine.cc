#include "tests/software_gpu/machine.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

#include "tests/software_gpu/order.h"
#include "tests/software_gpu/settings.h"
#include "tests/software_gpu/where.h"

namespace software_gpu {
namespace {

struct Counted {
  std::uint64_t calls = 0, bytes = 0;
};

struct Machine {
  std::recursive_mutex lock;
  std::mt19937_64 dice{settings().seed * 7919};
  std::map<std::string, Counted> counts;
  std::set<std::pair<std::string, const void*>> faults;  // with the calls that made them
  cudaError_t sticky = cudaSuccess;
  bool is_at_end = false;
};

// Never destroyed: threads of the program may still call when it ends.
Machine& machine() {
  static Machine* const made = [] {
    if (!settings().counts.empty()) {
      std::atexit([] {
        std::FILE* const file = std::fopen(settings().counts.c_str(), "a");
        if (file == nullptr) return;
        for (const auto& [call, counted] : machine().counts) {
          std::fprintf(file, "%d %s %llu %llu\n", getpid(), call.c_str(),
                       static_cast<unsigned long long>(counted.calls), static_cast<unsigned long long>(counted.bytes));
        }
        std::fclose(file);
      });
    }
    return new Machine;
  }();
  return *made;
}

}  // namespace

std::recursive_mutex& machine_lock() { return machine().lock; }

std::mt19937_64& dice() { return machine().dice; }

std::uint64_t draw(std::uint64_t below) { return below == 0 ? 0 : dice()() % below; }

void find_fault(const std::string& text) {
  const std::lock_guard hold(machine_lock());
  const void* const by = Running::now() == nullptr ? caller() : Running::now()->given_by();
  if (!machine().faults.insert({text, by}).second) return;
  const std::string said = by == nullptr ? text : text + ": " + place_in_source(by);
  std::fprintf(stderr, "software GPU: FAULT: %s\n", said.c_str());
  if (software_gpu_found != nullptr && !machine().is_at_end) return software_gpu_found(said.c_str());
  std::abort();
}

void expect_the_end() { machine().is_at_end = true; }

void count(const std::string& call, std::uint64_t bytes) {
  if (settings().counts.empty()) return;
  const std::lock_guard hold(machine_lock());
  Counted& counted = machine().counts[call];
  ++counted.calls;
  counted.bytes += bytes;
}

cudaError_t sticky_error() { return machine().sticky; }
void fail_for_good(cudaError_t error) { machine().sticky = error; }

}  // namespace software_gpu
