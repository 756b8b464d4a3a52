// Messages over tcp without a thread between: whoever calls the endpoint moves its bytes. A send is tried at once; what
// the kernel does not take is queued and goes on inside every later call. Large payloads are received straight into
// buffers of the endpoint, where the receiver uses them.
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "common/hash.h"
#include "common/os/aligned_buffer.h"
#include "common/text/log.h"
#include "common/transport/make_transport.h"
#include "common/transport/socket_link.h"
#include "common/transport/socket_links.h"
#include "common/transport/waits.h"

namespace syncopate {
namespace {

// A send blocks while more messages than this wait for the same peer.
constexpr std::size_t kMostQueued = 16384;
// Whoever waits for sends receives meanwhile, up to so much; beyond that, peers are held back.
constexpr std::size_t kMostHeld = 64 << 20;
// The peer that a message came from last is looked at first; after so many such looks, all are.
constexpr int kMostShortcuts = 16;
// The loss of a peer that has closed its endpoint in order is reported so much later: a member that finishes first must
// not keep the others from their last messages to each other.
constexpr Duration kGrace = std::chrono::seconds(1);

class SocketTransport final : public Transport {
 public:
  SocketTransport(const TransportOptions& options, SocketLinks links)
      : rank_(options.rank), largest_(options.largest_payload), links_(links.streams.size()) {
    for (int peer = 0; peer < size(); ++peer) {
      if (std::unique_ptr<SocketStream>& stream = links.streams[static_cast<std::size_t>(peer)]; stream) {
        link(peer) = std::make_unique<SocketLink>(peer, std::move(stream), pool_, largest_);
      }
    }
    counters_.rejected = links.rejected;
  }

  ~SocketTransport() override {
    if (!interrupted_.load()) linger();
  }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(links_.size()); }
  const char* name() const override { return "sockets"; }

  Result<std::span<std::byte>> allocate(std::size_t bytes) override {
    memory_.emplace_back((bytes + sizeof(float) - 1) / sizeof(float));
    return std::as_writable_bytes(memory_.back().span()).first(bytes);
  }

  Status send(int peer, std::string_view header, std::span<const std::byte> payload, PendingSends* pending,
              TimePoint deadline) override {
    SYNCOPATE_RETURN_IF_ERROR(check_message(header, payload, largest_));
    SocketLink& to = *link(peer);
    to.flush();
    if (to.queued() >= kMostQueued) {
      const auto has_room = [&] { return to.queued() < kMostQueued; };
      SYNCOPATE_RETURN_IF_ERROR(wait_for(has_room, deadline, "the network has not taken what was sent before"));
    }
    if (!to.deaf()) to.send(header, payload, pending == nullptr ? nullptr : &pending->counter());
    if (to.deaf()) return Status::peer_lost(fmt::format("peer {} is gone", peer));
    counters_.payload_bytes_out += static_cast<std::int64_t>(payload.size());
    return Status();
  }

  Result<Message> receive(TimePoint deadline) override {
    int lost = -1;
    const auto something = [&] { return !inbox_.empty() || (lost = lost_peer()) >= 0; };
    SYNCOPATE_RETURN_IF_ERROR(wait_for(something, deadline, "no message"));
    if (inbox_.empty()) {
      std::erase_if(losses_, [&](const Loss& loss) { return loss.peer == lost; });
      return Status::peer_lost(fmt::format("peer {} is gone", lost));
    }
    Message message = std::move(inbox_.front());
    inbox_.pop_front();
    held_bytes_ -= message.payload().size();
    likely_ = message.from();
    counters_.payload_bytes_in += static_cast<std::int64_t>(message.payload().size());
    return message;
  }

  Status wait(const PendingSends& pending, TimePoint deadline) override {
    const auto sent = [&] {
      return pending.none() && std::ranges::none_of(links_, [](const auto& to) { return to && to->holds_bytes(); });
    };
    return wait_for(sent, deadline, "the network has not taken what was sent");
  }

  void progress() override { flush(); }

  void interrupt() override { interrupted_.store(true); }

  TransportCounters counters() const override { return counters_; }

 private:
  struct Loss {
    int peer = 0;
    TimePoint due;  // when it is told
  };

  std::unique_ptr<SocketLink>& link(int peer) { return links_[static_cast<std::size_t>(peer)]; }

  bool flush() {
    bool moved = false;
    for (const auto& to : links_) moved |= to && to->flush();
    return moved;
  }

  bool may_receive() const { return held_bytes_ < kMostHeld; }

  bool receive_from(SocketLink& from, int peer) {
    const std::size_t before = inbox_.size();
    const bool moved = from.receive(inbox_);
    for (std::size_t i = before; i < inbox_.size(); ++i) held_bytes_ += inbox_[i].payload().size();
    if (moved && from.ended()) {
      losses_.push_back({peer, clock_.now() + (from.left_in_order() ? kGrace : Duration::zero())});
      if (from.corrupt() && counters_.dropped++ == 0) {
        log_warning("sockets endpoint {}: dropped the connection to peer {}, who sent no message", rank_, peer);
      }
    }
    return moved;
  }

  // A peer whose loss is to be told now; -1 if there is none.
  int lost_peer() const {
    for (const Loss& loss : losses_) {
      if (clock_.now() >= loss.due) return loss.peer;
    }
    return -1;
  }

  // Sends and receives what can be without waiting. False if nothing moved.
  bool look() {
    bool moved = flush();
    if (likely_ >= 0 && may_receive()) moved |= receive_from(*link(likely_), likely_);
    if (moved && ++shortcuts_ < kMostShortcuts) return true;
    shortcuts_ = 0;
    return poll_links(Duration::zero()) || moved;
  }

  // Waits for so long at most, and receives what has come. False if nothing has.
  bool poll_links(Duration timeout) {
    items_.clear();
    for (const auto& peer : links_) {
      short events = 0;
      if (peer && !peer->ended() && may_receive()) events |= POLLIN;
      if (peer && peer->has_more_to_send()) events |= POLLOUT;
      items_.push_back({events == 0 ? -1 : peer->descriptor(), events, 0});
    }
    const timespec time{.tv_nsec = timeout.count()};  // less than a second
    if (ppoll(items_.data(), items_.size(), &time, nullptr) <= 0) return false;
    bool moved = false;
    for (int peer = 0; peer < size(); ++peer) {
      const bool heard = (items_[static_cast<std::size_t>(peer)].revents & ~POLLOUT) != 0;
      if (heard && may_receive()) moved |= receive_from(*link(peer), peer);
    }
    return moved;
  }

  // Returns once `ready` says true, and moves what can be moved meanwhile. Spins for a moment, then sleeps.
  template <typename Ready>
  Status wait_for(Ready&& ready, TimePoint deadline, const char* late) {
    bool spins = false, is_late = false;
    TimePoint spin_until;
    while (!ready()) {
      if (interrupted_.load()) return Status::cancelled("interrupted");
      if (is_late) return Status::deadline_exceeded(late);
      const bool moved = look();
      const TimePoint now = clock_.now();
      is_late = now >= deadline;
      if (moved || is_late) {
        spins = false;
        continue;
      }
      if (!spins) spin_until = now + kSpinBeforeSleep;
      spins = true;
      if (now < spin_until) {
        sched_yield();
      } else {
        poll_links(std::min<Duration>(deadline - now, kLookUpEvery));
      }
    }
    return Status();
  }

  // Lets go out what is queued, and waits until the peers' kernels have confirmed it: a socket that is closed while
  // something comes in drops what they have not.
  void linger() {
    for (const auto& to : links_) {
      if (to) to->say_goodbye();
    }
    const TimePoint deadline = clock_.now() + kLinger;
    const auto all = [&](const auto& condition) {
      return [&] {
        inbox_.clear();
        held_bytes_ = 0;
        return std::ranges::all_of(links_, [&](const auto& to) { return !to || condition(*to); });
      };
    };
    (void)wait_for(all([](const SocketLink& to) { return !to.has_more_to_send(); }), deadline, "");
    const auto confirmed = all([](const SocketLink& to) { return to.ended() || to.unconfirmed() == 0; });
    while (!confirmed() && clock_.now() < deadline && !interrupted_.load()) poll_links(std::chrono::milliseconds(1));
  }

  const int rank_;
  const std::uint64_t largest_;  // payload
  SteadyClock clock_;
  BufferPool pool_;                                 // outlives messages and links
  std::vector<AlignedBuffer> memory_;               // outlives links, which read it
  std::vector<std::unique_ptr<SocketLink>> links_;  // by peer; none to oneself
  std::deque<Message> inbox_;                       // received, and not asked for yet
  std::size_t held_bytes_ = 0;                      // payloads in the inbox
  std::vector<Loss> losses_;                        // not told yet
  std::vector<pollfd> items_;
  int likely_ = -1;  // peer that the last message came from
  int shortcuts_ = 0;
  std::atomic<bool> interrupted_{false};
  TransportCounters counters_;
};

}  // namespace

Result<std::unique_ptr<Transport>> make_socket_transport(const TransportOptions& options, Rendezvous& rendezvous,
                                                         TimePoint deadline) {
  if (options.connections != 1) {
    return Status::invalid_argument(fmt::format("{} connections: sockets have one to each peer", options.connections));
  }
  const std::uint64_t run = hash_of(options.run_id + "/" + options.group);
  SYNCOPATE_ASSIGN_OR_RETURN(SocketLinks links, connect_sockets(options, run, rendezvous, deadline));
  return std::unique_ptr<Transport>(std::make_unique<SocketTransport>(options, std::move(links)));
}

}  // namespace syncopate
