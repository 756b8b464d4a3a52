#include "common/transport/socket_links.h"

#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <list>

#include "common/os/readiness.h"
#include "common/os/socket_address.h"
#include "common/text/log.h"
#include "common/transport/acceptor.h"
#include "common/transport/socket_handshake.h"
#include "common/transport/waits.h"

namespace syncopate {
namespace {

// Connections of others that are not through their handshake yet. Of more, the oldest is turned away.
constexpr std::size_t kMostBegun = 256;
// What the kernel may hold of a connection, each way: what a member reduces a segment with in its hands, this keeps
// moving. Fixed buffers of this size carry half as much again over loopback as those that the kernel sizes itself; with
// larger ones what is on its way between four members no longer fits into a cache.
constexpr int kKernelBuffer = 1 << 20;

Status refusal(const char* what) {
  // Its listener, or its end of a connection, has gone with it.
  const bool is_gone = errno == EPIPE || errno == ECONNRESET || errno == ECONNREFUSED;
  return Status(is_gone ? Code::kPeerLost : Code::kInternal,
                fmt::format("{} a tcp socket: {}", what, std::strerror(errno)));
}

bool has_buffer(int socket, int option) {
  int granted = 0;
  socklen_t size = sizeof(granted);
  setsockopt(socket, SOL_SOCKET, option, &kKernelBuffer, sizeof(kKernelBuffer));
  // The kernel doubles what it is asked for, to have room for its own records.
  return getsockopt(socket, SOL_SOCKET, option, &granted, &size) == 0 && granted >= 2 * kKernelBuffer;
}

// Whether the kernel grants kKernelBuffer. Where it grants less, its own sizing is better, and asking would end that.
bool grants_buffers() {
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return has_buffer(socket.get(), SO_SNDBUF) && has_buffer(socket.get(), SO_RCVBUF);
}

// On loopback nothing is congested. A control that paces what it sends (bbr, the default of some systems) leaves the
// processor idle there: four members take twice as long. This one is in every kernel, and open to everybody.
void choose_congestion_control(int socket, const SocketAddress& address) {
  constexpr std::string_view kUnpaced = "reno";
  if (!address.is_loopback()) return;
  setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, kUnpaced.data(), kUnpaced.size());
}

// For the network that `address` is in.
Result<FileDescriptor> new_socket(const SocketAddress& address) {
  FileDescriptor socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.open()) return refusal("opening");
  const int on = 1;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  choose_congestion_control(socket.get(), address);
  // Before it connects or listens, since the window's scale is agreed on then; who is accepted inherits all this.
  static const bool kGranted = grants_buffers();
  if (kGranted) {
    has_buffer(socket.get(), SO_SNDBUF);
    has_buffer(socket.get(), SO_RCVBUF);
  }
  return socket;
}

// Returns a socket that listens at a free port of `host`.
Result<FileDescriptor> listen_at(const std::string& host) {
  SYNCOPATE_ASSIGN_OR_RETURN(const SocketAddress address, SocketAddress::of_host(host));
  Result<FileDescriptor> listener = new_socket(address);
  if (!listener.ok()) return listener;
  if (bind(listener->get(), address.get(), address.size()) != 0) return refusal("binding");
  if (listen(listener->get(), SOMAXCONN) != 0) return refusal("listening on");
  return listener;
}

// All connections of one member that are being begun.
class Meeting {
 public:
  Meeting(const SocketHandshake::Member& self, FileDescriptor listener, Duration handshake_time)
      : self_(self),
        handshake_time_(handshake_time),
        acceptor_(std::move(listener), fmt::format("sockets endpoint {}", self.rank)),
        missing_(self.size - 1) {
    links_.streams.resize(static_cast<std::size_t>(self.size));
  }

  Status connect_to(int peer, const std::string& text) {
    const Result<SocketAddress> address = SocketAddress::parse(text);
    if (!address.ok()) return Status::data_loss(fmt::format("'{}' is not the address of a member", text));
    SYNCOPATE_ASSIGN_OR_RETURN(FileDescriptor socket, new_socket(*address));
    if (connect(socket.get(), address->get(), address->size()) != 0 && errno != EINPROGRESS) {
      return refusal("connecting");
    }
    begun_.push_back({SocketHandshake::connecting(std::move(socket), self_, peer), TimePoint::max()});
    return {};
  }

  Result<SocketLinks> complete(const Rendezvous& rendezvous, TimePoint deadline) {
    while (true) {
      SYNCOPATE_RETURN_IF_ERROR(advance());
      if (missing_ == 0) return std::move(links_);
      if (rendezvous.is_off()) return Status::cancelled(who_is_missing());
      const TimePoint now = SteadyClock().now();
      if (now >= deadline) return Status::deadline_exceeded(who_is_missing());
      std::vector<pollfd> items{{acceptor_.to_poll(), POLLIN, 0}};
      for (const auto& [handshake, due] : begun_) items.push_back({handshake.descriptor(), handshake.events(), 0});
      ready_before(std::min(deadline, now + kLookUpEvery), items);
      if (items[0].revents != 0) accept_all();
    }
  }

 private:
  struct Begun {
    SocketHandshake handshake;
    TimePoint due;  // when it is turned away

    bool was_accepted() const { return handshake.was_accepted(); }
  };

  void accept_all() {
    while (true) {
      FileDescriptor socket = acceptor_.accept(SOCK_NONBLOCK);
      const bool is_taken = socket.open();
      if (is_taken) {
        begun_.push_back({SocketHandshake::accepted(std::move(socket), self_), clock_.now() + handshake_time_});
      }
      const std::size_t most = acceptor_.is_short() ? 0 : kMostBegun;
      if (static_cast<std::size_t>(std::ranges::count_if(begun_, &Begun::was_accepted)) > most) {
        begun_.erase(std::ranges::find_if(begun_, &Begun::was_accepted));
        turn_away();
      }
      if (!is_taken) return;
    }
  }

  Status advance() {
    for (auto begun = begun_.begin(); begun != begun_.end();) {
      SocketHandshake& handshake = begun->handshake;
      const SocketHandshake::State state = handshake.advance();
      if (state == SocketHandshake::State::kUnderWay && clock_.now() < begun->due) {
        ++begun;
        continue;
      }
      const int peer = handshake.peer();
      const bool done = state == SocketHandshake::State::kDone;
      if (!done && peer >= 0 && peer < self_.rank) {
        return Status::peer_lost(fmt::format(
            "who listens at the address of peer {} does not prove to be that, or has gone: it was told nothing", peer));
      }
      if (done && !links_.streams[static_cast<std::size_t>(peer)]) {
        links_.streams[static_cast<std::size_t>(peer)] = handshake.take_stream();
        --missing_;
      } else {
        turn_away();
      }
      begun = begun_.erase(begun);
    }
    return {};
  }

  void turn_away() {
    if (links_.rejected++ == 0) {
      log_warning(
          "sockets endpoint {}: rejected a connection that did not prove to be of this run, or ended before: an "
          "intruder's, "
          "or of a process that was killed as it began",
          self_.rank);
    }
  }

  std::string who_is_missing() const {
    std::vector<int> ranks;
    for (int peer = 0; peer < self_.size; ++peer) {
      if (peer != self_.rank && !links_.streams[static_cast<std::size_t>(peer)]) ranks.push_back(peer);
    }
    return fmt::format("no connection to peer{} {}{}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "),
                       acceptor_.shortage());
  }

  const SocketHandshake::Member self_;
  const Duration handshake_time_;
  SteadyClock clock_;
  Acceptor acceptor_;
  std::list<Begun> begun_;
  SocketLinks links_;
  int missing_;
};

}  // namespace

Result<SocketLinks> connect_sockets(const TransportOptions& options, std::uint64_t run, Rendezvous& rendezvous,
                                    TimePoint deadline) {
  if (sodium_init() < 0) return Status::internal("libsodium cannot be used on this machine");
  SYNCOPATE_ASSIGN_OR_RETURN(FileDescriptor listener, listen_at(options.host));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<std::string> addresses,
                             rendezvous.exchange(options.group, options.rank, options.size,
                                                 SocketAddress::of_socket(listener.get()).to_string(), deadline));
  Meeting meeting(
      {.run = run, .rank = options.rank, .size = options.size, .keys = options.keys, .encrypted = options.encrypted},
      std::move(listener), options.handshake_time);
  // To those below, we connect; those above connect to us.
  for (int peer = 0; peer < options.rank; ++peer) {
    SYNCOPATE_RETURN_IF_ERROR(
        meeting.connect_to(peer, addresses[static_cast<std::size_t>(peer)]).in(fmt::format("peer {}", peer)));
  }
  return meeting.complete(rendezvous, deadline);
}

}  // namespace syncopate
