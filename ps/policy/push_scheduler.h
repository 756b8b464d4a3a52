// PushScheduler: chooses the chunk to push next. Pure: no bytes, no time, one thread.
//
// A chunk that waits for its turn can still be overtaken by one that the next forward pass needs sooner; a chunk that
// has been passed to the wire cannot. So the scheduler passes on only as much as keeps a link busy: the link's credit.
// Credit-based priority scheduling is from ByteScheduler (Peng et al., SOSP 2019, section 4); for it tensors are cut
// into chunks (P3, Jayarajan et al., MLSys 2019, section 4).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace syncopate::ps {

enum class PushOrder {
  kFifo,      // in the order in which they became ready
  kPriority,  // what the next forward pass needs first; among equals, the order in which they became ready
};

// "fifo", "priority"
const char* name_of(PushOrder value);

class PushScheduler {
 public:
  using Order = PushOrder;

  struct Chunk {
    std::size_t link = 0;       // 0 .. links-1: the shard, or the connection, that it goes over
    std::size_t bytes = 0;      // of the link's credit
    std::int64_t priority = 0;  // lower is needed earlier; the first tensor's index in the layout, say
    std::size_t index = 0;      // the caller's own; returned unchanged
  };

  // At most `credit_bytes` may be unanswered on each link.
  PushScheduler(Order order, std::size_t links, std::size_t credit_bytes);

  // `chunk` may be sent from now on. Allocates only if more chunks wait on its link than ever before.
  void ready(const Chunk& chunk);

  // Returns the chunk to send now, whose bytes count as outstanding from now on, or nothing if no link that has chunks
  // has credit. A link's chunks go strictly in order whatever their sizes, so that a large one cannot be overtaken
  // forever; one that is larger than the credit goes when nothing else is outstanding on its link. A link without
  // credit does not hold up the others. Each call looks at every link once, so it is meant for few links.
  std::optional<Chunk> next();

  // `bytes` that were outstanding on `link` have been answered, or never will be.
  void done(std::size_t link, std::size_t bytes);

  bool empty() const { return waiting_ == 0; }               // no chunk waits to be sent
  bool idle() const { return waiting_ + unanswered_ == 0; }  // no chunk waits for its response either
  std::size_t outstanding_bytes(std::size_t link) const { return links_[link].outstanding; }

 private:
  struct Waiting {
    Chunk chunk;
    std::uint64_t arrival;
  };
  struct Link {
    std::vector<Waiting> heap;  // the next one to go is in front
    std::size_t outstanding = 0;
  };

  bool goes_after(const Waiting& a, const Waiting& b) const;
  bool has_credit_for_next(const Link& link) const;

  Order order_;
  std::size_t credit_bytes_;
  std::vector<Link> links_;
  std::size_t waiting_ = 0;     // chunks
  std::size_t unanswered_ = 0;  // chunks
  std::uint64_t arrivals_ = 0;
};

}  // namespace syncopate::ps
