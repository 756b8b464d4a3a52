#include "ps/policy/push_scheduler.h"

#include <algorithm>
#include <cassert>

namespace syncopate::ps {

const char* name_of(PushOrder value) { return value == PushOrder::kFifo ? "fifo" : "priority"; }

PushScheduler::PushScheduler(Order order, std::size_t links, std::size_t credit_bytes)
    : order_(order), credit_bytes_(credit_bytes), links_(links) {}

void PushScheduler::ready(const Chunk& chunk) {
  assert(chunk.link < links_.size());
  std::vector<Waiting>& heap = links_[chunk.link].heap;
  heap.push_back({chunk, arrivals_++});
  std::ranges::push_heap(heap, [this](const Waiting& a, const Waiting& b) { return goes_after(a, b); });
  ++waiting_;
}

std::optional<PushScheduler::Chunk> PushScheduler::next() {
  if (waiting_ == 0) return std::nullopt;
  Link* first = nullptr;
  for (Link& link : links_) {
    if (!has_credit_for_next(link)) continue;
    if (first == nullptr || goes_after(first->heap.front(), link.heap.front())) first = &link;
  }
  if (first == nullptr) return std::nullopt;
  std::ranges::pop_heap(first->heap, [this](const Waiting& a, const Waiting& b) { return goes_after(a, b); });
  const Chunk chunk = first->heap.back().chunk;
  first->heap.pop_back();
  first->outstanding += chunk.bytes;
  --waiting_;
  ++unanswered_;
  return chunk;
}

void PushScheduler::done(std::size_t link, std::size_t bytes) {
  assert(link < links_.size() && unanswered_ > 0 && links_[link].outstanding >= bytes);
  links_[link].outstanding -= bytes;
  --unanswered_;
}

bool PushScheduler::goes_after(const Waiting& a, const Waiting& b) const {
  if (order_ == Order::kPriority && a.chunk.priority != b.chunk.priority) return a.chunk.priority > b.chunk.priority;
  return a.arrival > b.arrival;
}

bool PushScheduler::has_credit_for_next(const Link& link) const {
  if (link.heap.empty()) return false;
  return link.outstanding == 0 || link.outstanding + link.heap.front().chunk.bytes <= credit_bytes_;
}

}  // namespace syncopate::ps
