#include "common/transport/inproc_transport.h"

#include <fmt/format.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>

#include "common/os/aligned_buffer.h"

namespace syncopate {

struct InProcHub::Shared {
  struct Parcel {
    int from = -1;  // with lost: the peer that is gone
    bool lost = false;
    std::string header;
    std::span<const std::byte> payload;
    PendingSends::Counter pending;
  };

  // All waiting of one endpoint: for parcels, and for its own payloads to be let go.
  struct Inbox {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Parcel> parcels;
    bool interrupted = false;
    bool closed = false;

    // Returns whether the inbox took it.
    bool put(Parcel parcel) {
      const std::lock_guard lock(mutex);
      if (closed) return false;
      parcels.push_back(std::move(parcel));
      changed.notify_all();
      return true;
    }

    void let_go(const PendingSends::Counter& pending) {
      const std::lock_guard lock(mutex);
      pending->fetch_sub(1, std::memory_order_release);
      changed.notify_all();
    }
  };

  explicit Shared(int size) : inboxes(static_cast<std::size_t>(size)) {}
  Inbox& inbox(int rank) { return inboxes[static_cast<std::size_t>(rank)]; }

  std::vector<Inbox> inboxes;
  std::mutex memory_mutex;
  std::deque<AlignedBuffer> memory;  // of all endpoints: peers may hold a payload longer than its sender lives
};

class InProcTransport final : public Transport {
 public:
  using Parcel = InProcHub::Shared::Parcel;
  using Inbox = InProcHub::Shared::Inbox;

  InProcTransport(std::shared_ptr<InProcHub::Shared> shared, int rank)
      : shared_(std::move(shared)), rank_(rank), own_(shared_->inbox(rank)) {}

  ~InProcTransport() override {
    std::deque<Parcel> unread;
    {
      const std::lock_guard lock(own_.mutex);
      own_.closed = true;
      unread.swap(own_.parcels);
    }
    for (const Parcel& parcel : unread) {
      if (parcel.pending) shared_->inbox(parcel.from).let_go(parcel.pending);
    }
    for (int peer = 0; peer < size(); ++peer) {
      if (peer != rank_) shared_->inbox(peer).put({.from = rank_, .lost = true});
    }
  }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(shared_->inboxes.size()); }
  const char* name() const override { return "inproc"; }

  Result<std::span<std::byte>> allocate(std::size_t bytes) override {
    const std::lock_guard lock(shared_->memory_mutex);
    shared_->memory.emplace_back((bytes + sizeof(float) - 1) / sizeof(float));
    return std::as_writable_bytes(shared_->memory.back().span()).first(bytes);
  }

  Status send(int peer, std::string_view header, std::span<const std::byte> payload, PendingSends* pending,
              TimePoint) override {
    SYNCOPATE_RETURN_IF_ERROR(check_message(header, payload, kAnySize));
    Parcel parcel{.from = rank_, .header = std::string(header), .payload = payload};
    if (pending != nullptr && !payload.empty()) {
      parcel.pending = pending->counter();
      parcel.pending->fetch_add(1, std::memory_order_relaxed);
    }
    const PendingSends::Counter counter = parcel.pending;
    if (!shared_->inbox(peer).put(std::move(parcel))) {
      if (counter) counter->fetch_sub(1, std::memory_order_release);
      return Status::peer_lost(fmt::format("peer {} is gone", peer));
    }
    counters_.payload_bytes_out += static_cast<std::int64_t>(payload.size());
    return Status();
  }

  Result<Message> receive(TimePoint deadline) override {
    std::unique_lock lock(own_.mutex);
    const bool woken =
        own_.changed.wait_until(lock, deadline, [&] { return own_.interrupted || !own_.parcels.empty(); });
    if (own_.interrupted) return Status::cancelled("interrupted");
    if (!woken) return Status::deadline_exceeded("no message");
    Parcel parcel = std::move(own_.parcels.front());
    own_.parcels.pop_front();
    lock.unlock();
    if (parcel.lost) return Status::peer_lost(fmt::format("peer {} is gone", parcel.from));
    counters_.payload_bytes_in += static_cast<std::int64_t>(parcel.payload.size());
    std::unique_ptr<Message::Lease> lease;
    if (parcel.pending) lease = std::make_unique<Lease>(shared_, parcel.from, parcel.pending);
    return Message(parcel.from, std::move(parcel.header), parcel.payload, std::move(lease));
  }

  Status wait(const PendingSends& pending, TimePoint deadline) override {
    std::unique_lock lock(own_.mutex);
    own_.changed.wait_until(lock, deadline, [&] { return own_.interrupted || pending.none(); });
    if (pending.none()) return Status();
    if (own_.interrupted) return Status::cancelled("interrupted");
    return Status::deadline_exceeded("a peer still reads what was sent to it");
  }

  void progress() override {}

  void interrupt() override {
    const std::lock_guard lock(own_.mutex);
    own_.interrupted = true;
    own_.changed.notify_all();
  }

  TransportCounters counters() const override { return counters_; }

 private:
  class Lease final : public Message::Lease {
   public:
    Lease(std::shared_ptr<InProcHub::Shared> shared, int owner, PendingSends::Counter pending)
        : shared_(std::move(shared)), owner_(owner), pending_(std::move(pending)) {}
    ~Lease() override { shared_->inbox(owner_).let_go(pending_); }

   private:
    std::shared_ptr<InProcHub::Shared> shared_;
    int owner_;
    PendingSends::Counter pending_;
  };

  std::shared_ptr<InProcHub::Shared> shared_;
  int rank_;
  Inbox& own_;
  TransportCounters counters_;
};

InProcHub::InProcHub(int size) : shared_(std::make_shared<Shared>(size)) {}
InProcHub::~InProcHub() = default;

std::unique_ptr<Transport> InProcHub::endpoint(int rank) { return std::make_unique<InProcTransport>(shared_, rank); }

struct InProcRendezvous::Shared {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::map<int, std::string>> groups;
};

InProcRendezvous::InProcRendezvous() : shared_(std::make_unique<Shared>()) {}
InProcRendezvous::~InProcRendezvous() = default;

Result<std::vector<std::string>> InProcRendezvous::exchange(const std::string& group, int rank, int size,
                                                            const std::string& value, TimePoint deadline) {
  std::unique_lock lock(shared_->mutex);
  std::map<int, std::string>& members = shared_->groups[group];
  members[rank] = value;
  shared_->changed.notify_all();
  const auto complete = [&] { return static_cast<int>(members.size()) == size; };
  if (!shared_->changed.wait_until(lock, deadline, complete)) {
    return Status::deadline_exceeded(
        fmt::format("{} of {} members of group {} are there", members.size(), size, group));
  }
  std::vector<std::string> values;
  for (const auto& [member, published] : members) values.push_back(published);
  return values;
}

}  // namespace syncopate
