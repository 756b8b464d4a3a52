// The memory of the devices, which is closed to the host, and the host memory that they may use later.
#pragma once

#include <c10/util/Exception.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "queue.h"

namespace software_device {

constexpr int kUnset = 0xFF;  // each byte that nobody has written: NaN in every float type
constexpr std::size_t kDeviceBytes = std::size_t{16} << 30;  // of addresses

// A file in memory, which is mapped twice: closed, where tensors lie, and open, where kernels find them.
class Memory {
 public:
  explicit Memory(int devices) : bytes_(devices * kDeviceBytes) {
    const int file = memfd_create("software device", MFD_CLOEXEC);
    TORCH_CHECK(file >= 0 && ftruncate(file, static_cast<off_t>(bytes_)) == 0, "memfd_create: ", std::strerror(errno));
    closed_ = map(file, PROT_NONE);
    open_ = map(file, PROT_READ | PROT_WRITE);
    close(file);
  }

  bool has(const void* closed) const { return closed >= closed_ && closed < closed_ + bytes_; }
  int device_of(const void* closed) const {
    return static_cast<int>((static_cast<const char*>(closed) - closed_) / kDeviceBytes);
  }
  char* open(const void* closed) const { return open_ + (static_cast<const char*>(closed) - closed_); }

  char* take(int device, std::size_t bytes) {
    std::vector<char*>& free = free_[{device, bytes}];
    if (!free.empty()) {
      char* const data = free.back();
      free.pop_back();
      return data;
    }
    std::size_t& used = used_[device];
    TORCH_CHECK_WITH(OutOfMemoryError, used + bytes <= kDeviceBytes, "The software device has no ", bytes,
                     " bytes left");
    char* const data = closed_ + device * kDeviceBytes + used;
    used += bytes;
    std::memset(open(data), kUnset, bytes);
    return data;
  }

  // Who reads it later reads NaN.
  void give_back(char* data, std::size_t bytes) {
    std::memset(open(data), kUnset, bytes);
    free_[{device_of(data), bytes}].push_back(data);
  }

 private:
  char* map(int file, int protection) const {
    void* const data = mmap(nullptr, bytes_, protection, MAP_SHARED | MAP_NORESERVE, file, 0);
    TORCH_CHECK(data != MAP_FAILED, "mmap: ", std::strerror(errno));
    madvise(data, bytes_, MADV_DONTFORK);
    return static_cast<char*>(data);
  }

  const std::size_t bytes_;
  char *closed_, *open_;
  std::map<std::pair<int, std::size_t>, std::vector<char*>> free_;
  std::map<int, std::size_t> used_;
};

// An allocation on a device, of a power of two. Once its tensor has gone, the streams that have been recorded for it
// keep it until they have come so far; others that still use it read NaN.
struct Block {
  Block(Memory& memory, int device, std::size_t asked, Queue& queue)
      : memory(memory),
        bytes(std::bit_ceil(std::max(asked, std::size_t{64}))),
        data(memory.take(device, bytes)),
        queues({&queue}) {}
  ~Block() { memory.give_back(data, bytes); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  Memory& memory;
  const std::size_t bytes;
  char* const data;
  std::set<Queue*> queues;
  History history;
};

// Pinned memory of the host. Copies that are queued keep it.
struct Pinned {
  explicit Pinned(std::size_t asked)
      : bytes((std::max(asked, std::size_t{1}) + 63) / 64 * 64),
        data(static_cast<char*>(std::aligned_alloc(64, bytes))) {
    TORCH_CHECK(data != nullptr, "There are no ", bytes, " bytes of memory");
    std::memset(data, kUnset, bytes);
  }
  ~Pinned() { std::free(data); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

  // All there are, by where they begin.
  static std::map<const char*, std::weak_ptr<Pinned>>& all() {
    static auto* all = new std::map<const char*, std::weak_ptr<Pinned>>;
    return *all;
  }
  // Where an address lies, if in any.
  static std::shared_ptr<Pinned> find(const void* data) {
    const auto* const address = static_cast<const char*>(data);
    const auto next = all().upper_bound(address);
    if (next == all().begin()) return nullptr;
    const std::shared_ptr<Pinned> pinned = std::prev(next)->second.lock();
    return pinned && address < pinned->data + pinned->bytes ? pinned : nullptr;
  }

  const std::size_t bytes;
  char* const data;
  int reads = 0;  // by copies that are queued
  History history;
};

}  // namespace software_device
