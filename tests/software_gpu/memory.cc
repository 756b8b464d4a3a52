#include "tests/software_gpu/memory.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/software_gpu/accesses.h"
#include "tests/software_gpu/machine.h"
#include "tests/software_gpu/order.h"
#include "tests/software_gpu/settings.h"

namespace software_gpu {
namespace {

constexpr std::size_t kArena = std::size_t{64} << 30, kRedZone = 256;
// Large allocations lie on huge pages, so that opening and closing them costs little.
constexpr std::size_t kPage = 4096, kHugePage = std::size_t{2} << 20;
constexpr int kSpoiled = 0xff;  // four of them are a NaN

struct Allocation {
  std::size_t bytes = 0;
  std::size_t pages = 0;  // in bytes, with the red zone
  bool is_live = true;
};

struct Memory {
  char* arena = nullptr;
  std::size_t end = 0;  // of what was ever given out
  std::size_t in_use = 0;
  std::map<std::size_t, Allocation> allocations;  // by place in the arena
  std::map<const char*, std::size_t> pinned;      // bytes, by address
  std::set<void*> pinned_here;                    // allocated by allocate_pinned()
  int opened = 0;                                 // by how many OpenMemory
  std::vector<std::size_t> touched;               // allocations that are open since work has touched them
  std::atomic_flag is_opening;                    // several threads of a library may touch memory for the first time
};

struct sigaction action_before;
Memory& memory_of_all();

// The allocation that has this address; null: none.
const std::pair<const std::size_t, Allocation>* allocation_at(const void* address) {
  const Memory& memory = memory_of_all();
  const char* const at = static_cast<const char*>(address);
  if (at < memory.arena || at >= memory.arena + kArena) return nullptr;
  const auto place = static_cast<std::size_t>(at - memory.arena);
  const auto behind = memory.allocations.upper_bound(place);
  if (behind == memory.allocations.begin()) return nullptr;
  const auto& found = *std::prev(behind);
  return found.second.is_live && place - found.first < found.second.pages ? &found : nullptr;
}

void protect(std::size_t at, const Allocation& allocation, int protection) {
  mprotect(memory_of_all().arena + at, allocation.pages, protection);
}

// Opens what work touches for the first time. Called by a handler of a signal, though not one that interrupts anything
// of this library's: the vector has room.
bool open_for_work(const void* address) {
  Memory& memory = memory_of_all();
  const auto* const found = memory.opened > 0 ? allocation_at(address) : nullptr;
  if (found == nullptr) return false;
  while (memory.is_opening.test_and_set()) {
  }
  protect(found->first, found->second, PROT_READ | PROT_WRITE);
  if (std::ranges::find(memory.touched, found->first) == memory.touched.end()) memory.touched.push_back(found->first);
  memory.is_opening.clear();
  return true;
}

// Only what a handler of a signal may call.
void meet_closed_memory(int, siginfo_t* info, void*) {
  if (open_for_work(info->si_addr)) return;
  char text[300];
  const Running* const running = Running::now();
  const int size = std::snprintf(text, sizeof(text), "software GPU: FAULT: %s touches %p, which is not open to it\n",
                                 running == nullptr ? "code of the host" : running->name().c_str(), info->si_addr);
  (void)!write(STDERR_FILENO, text, static_cast<std::size_t>(std::max(size, 0)));
  sigaction(SIGSEGV, &action_before, nullptr);
}

Memory& memory_of_all() {
  static Memory* const made = [] {
    auto* const memory = new Memory;
    auto* const mapped = static_cast<char*>(
        mmap(nullptr, kArena + kHugePage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    memory->arena = mapped + (kHugePage - reinterpret_cast<std::uintptr_t>(mapped) % kHugePage);
    madvise(memory->arena, kArena, MADV_HUGEPAGE);
    watch_device(memory->arena, kArena);
    struct sigaction action {};
    action.sa_sigaction = meet_closed_memory;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &action_before);
    return memory;
  }();
  return *made;
}

void check_red_zone(std::size_t at, const Allocation& allocation) {
  const OpenMemory open;
  const auto* const red = reinterpret_cast<const unsigned char*>(memory_of_all().arena + at + allocation.bytes);
  const auto* const end = red + (allocation.pages - allocation.bytes);
  const auto* const wrong = std::find_if(red, end, [](unsigned char byte) { return byte != kSpoiled; });
  if (wrong == end) return;
  find_fault("something has written behind the end of " + std::to_string(allocation.bytes) +
             " bytes of device memory, at +" + std::to_string(wrong - red));
}

}  // namespace

OpenMemory::OpenMemory() { ++memory_of_all().opened; }

OpenMemory::~OpenMemory() {
  Memory& memory = memory_of_all();
  if (--memory.opened > 0) return;
  for (const std::size_t at : memory.touched) protect(at, memory.allocations[at], PROT_NONE);
  memory.touched.clear();
}

void spoil(void* memory, std::size_t bytes) { std::memset(memory, kSpoiled, bytes); }

cudaError_t allocate(void** address, std::size_t bytes) {
  Memory& memory = memory_of_all();
  const std::size_t page = bytes < kHugePage / 2 ? kPage : kHugePage;
  const std::size_t pages = (bytes + kRedZone + page - 1) / page * page;
  const bool is_there = bytes <= settings().memory && memory.in_use + bytes <= settings().memory;
  if (!is_there || memory.end + pages > kArena) return remember(cudaErrorMemoryAllocation);
  const std::size_t at = (memory.end + page - 1) / page * page;
  memory.end = at + pages + (draw(4) == 0 ? kPage : 0);  // now and then a page that is nobody's
  memory.in_use += bytes;
  const Allocation& made = memory.allocations[at] = {.bytes = bytes, .pages = pages};
  memory.touched.reserve(memory.allocations.size());
  protect(at, made, PROT_READ | PROT_WRITE);
  spoil(memory.arena + at, pages);
  protect(at, made, PROT_NONE);
  *address = memory.arena + at;
  return cudaSuccess;
}

cudaError_t release(void* address) {
  Memory& memory = memory_of_all();
  const auto found = memory.allocations.find(static_cast<std::size_t>(static_cast<char*>(address) - memory.arena));
  if (found == memory.allocations.end() || !found->second.is_live) {
    find_fault("cudaFree of what is no allocation");
    return remember(cudaErrorInvalidValue);
  }
  auto& [at, allocation] = *found;
  check_red_zone(at, allocation);
  madvise(memory.arena + at, allocation.pages, MADV_DONTNEED);
  forget_device(memory.arena + at, allocation.pages);
  mprotect(memory.arena + at, allocation.pages, PROT_NONE);
  memory.in_use -= allocation.bytes;
  allocation.is_live = false;
  return sticky_error();
}

std::size_t device_bytes_from(const void* address) {
  const auto* const found = allocation_at(address);
  if (found == nullptr) return 0;
  const auto place = static_cast<std::size_t>(static_cast<const char*>(address) - memory_of_all().arena) - found->first;
  return place < found->second.bytes ? found->second.bytes - place : 0;
}

std::size_t free_memory() { return settings().memory - memory_of_all().in_use; }

cudaError_t allocate_pinned(void** address, std::size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return remember(cudaErrorMemoryAllocation);
  spoil(memory, bytes);
  memory_of_all().pinned[static_cast<char*>(memory)] = bytes;
  memory_of_all().pinned_here.insert(memory);
  watch_pinned(memory, bytes);
  *address = memory;
  return cudaSuccess;
}

cudaError_t release_pinned(void* address) {
  Memory& memory = memory_of_all();
  if (memory.pinned_here.erase(address) == 0) {
    find_fault("cudaFreeHost of what is no allocation");
    return remember(cudaErrorInvalidValue);
  }
  const auto pinned = memory.pinned.find(static_cast<char*>(address));
  munmap(address, pinned->second);
  forget_pinned(address);
  memory.pinned.erase(pinned);
  return sticky_error();
}

cudaError_t pin(void* address, std::size_t bytes) {
  const char* const at = static_cast<const char*>(address);
  for (const auto& [begin, size] : memory_of_all().pinned) {
    if (at < begin + size && at + bytes > begin) return remember(cudaErrorHostMemoryAlreadyRegistered);
  }
  memory_of_all().pinned[at] = bytes;
  watch_pinned(address, bytes);
  return cudaSuccess;
}

cudaError_t unpin(void* address) {
  const bool was_pinned = memory_of_all().pinned.erase(static_cast<char*>(address)) > 0;
  if (was_pinned) forget_pinned(address);
  return was_pinned ? sticky_error() : remember(cudaErrorHostMemoryNotRegistered);
}

bool is_pinned(const void* address, std::size_t bytes) {
  const char* const at = static_cast<const char*>(address);
  return std::ranges::any_of(memory_of_all().pinned, [&](const auto& range) {
    return at >= range.first && at + bytes <= range.first + range.second;
  });
}

void check_memory_at_end() {
  const Memory& memory = memory_of_all();
  const auto left = std::ranges::count_if(memory.allocations, [](const auto& each) { return each.second.is_live; });
  if (left > 0) {
    find_fault("leak: " + std::to_string(left) + " allocations of device memory, " + std::to_string(memory.in_use) +
               " bytes");
  }
  if (!memory.pinned_here.empty()) {
    find_fault("leak: " + std::to_string(memory.pinned_here.size()) + " allocations of pinned memory");
  }
}

}  // namespace software_gpu
