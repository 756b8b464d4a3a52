#include "tests/software_gpu/pinned_copies.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "tests/software_gpu/machine.h"
#include "tests/software_gpu/memory.h"
#include "tests/software_gpu/order.h"

namespace software_gpu {

struct PinnedCopy {
  const char* at = nullptr;
  std::size_t bytes = 0;
  bool is_upload = false;
  bool stays = true;      // the source: no other copy changes it
  std::size_t trace = 0;  // of the source's bytes
  bool is_done = false;
  std::size_t lane = 0;  // then
  std::uint32_t piece = 0;

  bool overlaps(const PinnedCopy& other) const { return at < other.at + other.bytes && other.at < at + bytes; }
  std::size_t trace_now() const { return std::hash<std::string_view>()({at, bytes}); }
  bool is_known() const { return is_done && known_to_host()->has(lane, piece); }
  void check() const {
    if (!is_upload || !stays || trace == trace_now()) return;
    find_fault("the host writes pinned memory before it has waited for cudaMemcpyAsync, which reads it");
  }
};

namespace {

std::vector<std::shared_ptr<PinnedCopy>>& in_flight() {
  static auto* const copies = new std::vector<std::shared_ptr<PinnedCopy>>;
  std::erase_if(*copies, [](const auto& copy) { return copy->is_known() || !is_pinned(copy->at, copy->bytes); });
  return *copies;
}

}  // namespace

std::shared_ptr<PinnedCopy> begin_upload(const void* from, std::size_t bytes) {
  auto copy = std::make_shared<PinnedCopy>();
  copy->at = static_cast<const char*>(from);
  copy->bytes = bytes;
  copy->is_upload = true;
  copy->trace = copy->trace_now();
  for (const auto& other : in_flight()) {
    if (!other->overlaps(*copy)) continue;
    other->check();
    if (!other->is_upload && !other->is_done) copy->stays = false;
  }
  in_flight().push_back(copy);
  return copy;
}

std::shared_ptr<PinnedCopy> begin_download(void* to, std::size_t bytes) {
  auto copy = std::make_shared<PinnedCopy>();
  copy->at = static_cast<const char*>(to);
  copy->bytes = bytes;
  bool is_read = false;
  for (const auto& other : in_flight()) {
    if (!other->is_upload || !other->overlaps(*copy)) continue;
    other->check();
    other->stays = false;
    is_read = is_read || !other->is_done;
  }
  if (!is_read) spoil(to, bytes);
  in_flight().push_back(copy);
  return copy;
}

void carry_out(const std::shared_ptr<PinnedCopy>& copy) {
  copy->check();
  copy->is_done = true;
  copy->lane = Running::now()->lane();
  copy->piece = Running::now()->piece();
}

}  // namespace software_gpu
