// Links: a unix socket between every two members of a group on one host. They pass the file descriptors of shared
// memory, and tell when a peer is gone. They listen at abstract names, so that no socket file is left behind, random
// ones, so that nobody has taken them before. Every user of the host can connect there: who is of another user, or does
// not prove to have the run's secret, is turned away, and who says nothing holds up nobody. When all are connected
// nobody listens any longer.
#pragma once

#include <poll.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/os/file_descriptor.h"
#include "common/rendezvous.h"
#include "common/transport/acceptor.h"
#include "common/transport/make_transport.h"
#include "common/transport/shm_memory.h"
#include "common/transport/shm_parcel.h"

namespace syncopate {

class ShmLinks {
 public:
  // Listens, exchanges addresses, connects to all peers, and swaps hellos that carry `inbox`. Afterwards inbox_of(peer)
  // gives the memory that each peer has sent.
  static Result<ShmLinks> connect(const TransportOptions& options, std::uint64_t run, const SharedMemory& inbox,
                                  Rendezvous& rendezvous, TimePoint deadline);

  // The descriptor that came with `peer`'s hello. Once a peer.
  FileDescriptor take_inbox_of(int peer) { return std::move(inboxes_[static_cast<std::size_t>(peer)]); }

  // Hands an arena's memory to every peer that is still there.
  Status announce_arena(std::uint64_t number, const SharedMemory& memory);

  // The next parcel that `peer` has sent; nothing if there is none.
  std::optional<ReceivedParcel> next_from(int peer);

  // Peers, not reported before, whose end of the link is closed.
  std::vector<int> newly_lost();

  // Connections that were not begun as a peer begins one.
  std::int64_t turned_away() const { return turned_away_; }

 private:
  // A connection that has not said hello yet.
  struct Silent {
    FileDescriptor connection;
    TimePoint due;  // when it is turned away
  };
  // What the members do while they connect.
  struct Meeting {
    const TransportOptions& options;
    const SharedMemory& inbox;
    const Rendezvous& rendezvous;
    TimePoint deadline;
  };

  ShmLinks(int rank, int size, std::uint64_t run);
  Status connect_to(int peer, const std::string& name, const Meeting& meeting);
  Status accept_missing(Acceptor& acceptor, const Meeting& meeting);
  void accept_all(Acceptor& acceptor, std::vector<Silent>& silent, Duration handshake_time);
  // Whether the connection, which has said something, is a peer's who was missing; it is then a link.
  bool admit(FileDescriptor connection, const Meeting& meeting);
  Status take_answer_of(int peer, const Meeting& meeting);
  ShmParcel hello_to(int peer, const TransportOptions& options) const;
  bool is_hello_of(int peer, const ShmParcel& parcel, const TransportOptions& options) const;
  std::string who_is_missing() const;
  void turn_away();
  FileDescriptor& link(int peer) { return links_[static_cast<std::size_t>(peer)]; }

  std::uint32_t rank_;
  std::uint64_t run_;
  std::vector<FileDescriptor> links_;    // by peer; none to oneself
  std::vector<FileDescriptor> inboxes_;  // by peer
  std::vector<bool> lost_;               // by peer
  std::vector<pollfd> polled_;           // what newly_lost looks at: who waits does so often, and allocates nothing
  std::int64_t turned_away_ = 0;
};

}  // namespace syncopate
