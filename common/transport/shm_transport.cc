// Messages between processes of one host through shared memory: a message is a slot in the receiver's inbox that says
// where in the sender's memory the payload lies; the receiver maps that memory and reads the payload in place.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <new>
#include <vector>

#include "common/hash.h"
#include "common/os/read_once.h"
#include "common/text/log.h"
#include "common/transport/make_transport.h"
#include "common/transport/shm_inbox.h"
#include "common/transport/shm_links.h"
#include "common/transport/shm_memory.h"

namespace syncopate {
namespace {

struct InFlight {
  int peer = 0;
  ShmSlot* slot = nullptr;
  PendingSends::Counter pending;
};

struct Peer {
  std::optional<SharedMemory> inbox;             // theirs, writable: where we put messages for them
  std::map<std::uint64_t, SharedMemory> arenas;  // theirs, read-only, by their number
  std::vector<bool> shown;                       // ours, by number, whether they know it
  std::uint64_t sent = 0;                        // messages, so far
  std::uint64_t received = 0;
  bool lost = false;
  bool loss_reported = false;
};

class SlotLease final : public Message::Lease {
 public:
  SlotLease(ShmSlot& slot, ShmDoorbell& sender) : slot_(slot), sender_(sender) {}
  ~SlotLease() override {
    slot_.state.store(ShmSlot::kFree, std::memory_order_release);
    sender_.ring();
  }

 private:
  ShmSlot& slot_;
  ShmDoorbell& sender_;
};

class ShmTransport final : public Transport {
 public:
  ShmTransport(const TransportOptions& options, std::uint64_t run, SharedMemory inbox)
      : rank_(options.rank),
        run_(run),
        inbox_memory_(std::move(inbox)),
        peers_(static_cast<std::size_t>(options.size)) {
    own_ = ::new (inbox_memory_.bytes().data()) ShmInbox;
    own_->run = run;
    own_->senders = static_cast<std::uint64_t>(options.size);
    waiter_.emplace(own_->doorbell);
  }

  ~ShmTransport() override {
    for (const InFlight& flight : in_flight_) flight.pending->fetch_sub(1, std::memory_order_release);
  }

  Status connect(const TransportOptions& options, Rendezvous& rendezvous, TimePoint deadline) {
    SYNCOPATE_ASSIGN_OR_RETURN(ShmLinks links, ShmLinks::connect(options, run_, inbox_memory_, rendezvous, deadline));
    links_.emplace(std::move(links));
    counters_.rejected = links_->rejected();
    for (int rank = 0; rank < size(); ++rank) {
      if (rank == rank_) continue;
      SYNCOPATE_ASSIGN_OR_RETURN(SharedMemory inbox,
                                 SharedMemory::map(links_->take_inbox_of(rank), true, SharedMemory::Pages::kUntouched));
      if (inbox.bytes().size() < ShmInbox::bytes_for(size())) {
        return Status::data_loss(fmt::format("the inbox of peer {} is too small", rank));
      }
      // It has slots for every member: in a large group, filling all would take longer than anything else.
      inbox.fill(0, sizeof(ShmInbox));
      inbox.fill(ShmInbox::slots_begin(rank_), ShmInbox::kSlotBytes);
      peer(rank).inbox.emplace(std::move(inbox));
      if (inbox_of(rank).run != run_) return Status::data_loss(fmt::format("peer {} is of another run", rank));
    }
    return Status();
  }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(peers_.size()); }
  const char* name() const override { return "shm"; }

  Result<std::span<std::byte>> allocate(std::size_t bytes) override {
    SYNCOPATE_ASSIGN_OR_RETURN(SharedMemory memory, SharedMemory::create(std::max<std::size_t>(bytes, 1)));
    arenas_.push_back(std::move(memory));
    return arenas_.back().bytes().first(bytes);
  }

  Status send(int to, std::string_view header, std::span<const std::byte> payload, PendingSends* pending,
              TimePoint deadline) override {
    SYNCOPATE_RETURN_IF_ERROR(check_message(header, payload, kAnySize));
    ShmSlot& slot = inbox_of(to).slot(rank_, peer(to).sent);
    const auto is_free = [&] { return slot.state.load(std::memory_order_acquire) == ShmSlot::kFree || peer(to).lost; };
    SYNCOPATE_RETURN_IF_ERROR(wait_for(is_free, deadline, "the peer's inbox is full"));
    if (peer(to).lost) return Status::peer_lost(fmt::format("peer {} is gone", to));
    progress();  // what was in this slot before is done

    ShmSlot::Place place{.header_bytes = static_cast<std::uint32_t>(header.size()), .payload_bytes = payload.size()};
    if (!payload.empty() && !locate(payload, place)) {
      return Status::invalid_argument("the payload does not lie in memory from allocate()");
    }
    if (!payload.empty()) SYNCOPATE_RETURN_IF_ERROR(show_arena(to, place.arena));
    slot.place = place;
    std::copy(header.begin(), header.end(), slot.header);
    if (pending != nullptr && !payload.empty()) {
      pending->counter()->fetch_add(1, std::memory_order_relaxed);
      in_flight_.push_back({to, &slot, pending->counter()});
    }
    slot.state.store(ShmSlot::kFull, std::memory_order_release);
    ++peer(to).sent;
    counters_.payload_bytes_out += static_cast<std::int64_t>(payload.size());
    inbox_of(to).doorbell.ring();
    return Status();
  }

  Result<Message> receive(TimePoint deadline) override {
    while (true) {
      int from = -1;
      const auto something = [&] { return (from = next_sender()) >= 0 || lost_peer() >= 0; };
      SYNCOPATE_RETURN_IF_ERROR(wait_for(something, deadline, "no message"));
      if (from < 0) {
        const int lost = lost_peer();
        peer(lost).loss_reported = true;
        return Status::peer_lost(fmt::format("peer {} is gone", lost));
      }
      std::optional<Message> message = take(from);
      SYNCOPATE_RETURN_IF_ERROR(exhausted_);
      if (message) return std::move(*message);
    }
  }

  Status wait(const PendingSends& pending, TimePoint deadline) override {
    const auto all_done = [&] {
      progress();
      return pending.none();
    };
    return wait_for(all_done, deadline, "a peer still reads what was sent to it");
  }

  void progress() override {
    std::erase_if(in_flight_, [&](const InFlight& flight) {
      const bool done = flight.slot->state.load(std::memory_order_acquire) == ShmSlot::kFree || peer(flight.peer).lost;
      if (done) flight.pending->fetch_sub(1, std::memory_order_release);
      return done;
    });
  }

  void interrupt() override { waiter_->interrupt(); }

  TransportCounters counters() const override { return counters_; }

 private:
  Peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  ShmInbox& inbox_of(int rank) { return *reinterpret_cast<ShmInbox*>(peer(rank).inbox->bytes().data()); }

  // Writes to `place` in which of our arenas the payload lies.
  bool locate(std::span<const std::byte> payload, ShmSlot::Place& place) const {
    for (std::size_t number = 0; number < arenas_.size(); ++number) {
      const std::span<const std::byte> arena = arenas_[number].bytes();
      if (payload.data() >= arena.data() && payload.data() + payload.size() <= arena.data() + arena.size()) {
        place.arena = number;
        place.offset = static_cast<std::uint64_t>(payload.data() - arena.data());
        return true;
      }
    }
    return false;
  }

  // A peer learns of an arena with the first message from it. Most members of a large group never send to each other,
  // and a descriptor that nobody takes off a socket counts against this user's limit for as long as the socket lasts.
  Status show_arena(int to, std::uint64_t number) {
    std::vector<bool>& shown = peer(to).shown;
    shown.resize(arenas_.size());
    if (shown[number]) return Status();
    shown[number] = true;
    return links_->show_arena(to, number, arenas_[number]);
  }

  // The next peer, fairly in turn, that has a message for us; -1 if none has.
  int next_sender() {
    for (int i = 1; i <= size(); ++i) {
      const int rank = (last_sender_ + i) % size();
      if (own_->slot(rank, peer(rank).received).state.load(std::memory_order_acquire) == ShmSlot::kFull) {
        return last_sender_ = rank;
      }
    }
    return -1;
  }

  int lost_peer() {
    for (int rank = 0; rank < size(); ++rank) {
      if (peer(rank).lost && !peer(rank).loss_reported) return rank;
    }
    return -1;
  }

  // Nothing if the message does not check out.
  std::optional<Message> take(int from) {
    ShmSlot& slot = own_->slot(from, peer(from).received++);
    slot.state.store(ShmSlot::kTaken, std::memory_order_relaxed);
    auto lease = std::make_unique<SlotLease>(slot, inbox_of(from).doorbell);
    const auto place = read_once<ShmSlot::Place>(&slot.place);
    const std::uint64_t offset = place.offset, bytes = place.payload_bytes;
    if (place.header_bytes > kMaxWireHeaderBytes) return drop("a header of impossible size");
    std::string header(slot.header, place.header_bytes);
    if (bytes == 0) return Message(from, std::move(header), {}, nullptr);
    const SharedMemory* arena = arena_of(from, place.arena);
    if (arena == nullptr) return drop("a payload in unknown memory");
    const std::size_t arena_bytes = arena->bytes().size();
    if (offset > arena_bytes || bytes > arena_bytes - offset) return drop("a payload beyond its memory");
    counters_.payload_bytes_in += static_cast<std::int64_t>(bytes);
    return Message(from, std::move(header), arena->bytes().subspan(offset, bytes), std::move(lease));
  }

  std::nullopt_t drop(const char* reason) {
    if (counters_.dropped++ == 0) log_warning("shm endpoint {}: dropped {}", rank_, reason);
    return std::nullopt;
  }

  // A peer's arena by its number; null if it never announced it.
  const SharedMemory* arena_of(int from, std::uint64_t number) {
    std::map<std::uint64_t, SharedMemory>& known = peer(from).arenas;
    while (!known.contains(number)) {
      std::optional<ReceivedParcel> received = links_->next_from(from);
      if (!received) return nullptr;
      Result<SharedMemory> memory = SharedMemory::map(std::move(received->file), false);
      if (memory.status().code() == Code::kResourceExhausted) exhausted_ = memory.status();
      if (!memory.ok()) return nullptr;
      known.emplace(received->parcel.number, std::move(*memory));
    }
    return &known.at(number);
  }

  template <typename Ready>
  Status wait_for(Ready&& ready, TimePoint deadline, const char* late) {
    return waiter_->wait_for(ready, deadline, late, [this] {
      for (int rank : links_->newly_lost()) peer(rank).lost = true;
    });
  }

  const int rank_;
  const std::uint64_t run_;
  SharedMemory inbox_memory_;
  ShmInbox* own_ = nullptr;
  Status exhausted_;  // there is no room for a peer's memory
  std::optional<ShmWaiter> waiter_;
  std::optional<ShmLinks> links_;
  std::vector<Peer> peers_;  // by rank
  std::vector<SharedMemory> arenas_;
  std::vector<InFlight> in_flight_;
  int last_sender_ = 0;
  TransportCounters counters_;
};

}  // namespace

Result<std::unique_ptr<Transport>> make_shm_transport(const TransportOptions& options, Rendezvous& rendezvous,
                                                      TimePoint deadline) {
  SYNCOPATE_ASSIGN_OR_RETURN(SharedMemory inbox, SharedMemory::create(ShmInbox::bytes_for(options.size)));
  const std::uint64_t run = hash_of(options.run_id + "/" + options.group);
  auto transport = std::make_unique<ShmTransport>(options, run, std::move(inbox));
  SYNCOPATE_RETURN_IF_ERROR(transport->connect(options, rendezvous, deadline));
  return std::unique_ptr<Transport>(std::move(transport));
}

}  // namespace syncopate
