// ShmLinks: a unix socket between every two members of a group on one host. The sockets carry the file descriptors of
// shared memory, and show when a peer is gone. They listen at abstract names, so that no socket file is left behind,
// and at random ones, so that nobody has taken them before. Every user of the host can connect to them: a connection of
// another user, or without proof of the run's secret, is rejected, and a silent one delays nobody. Once all members are
// connected, nobody listens any longer.
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
  // Listens, exchanges addresses, connects to all peers, and swaps hellos that carry `inbox`. Afterwards
  // take_inbox_of(peer) returns the memory that each peer has sent.
  static Result<ShmLinks> connect(const TransportOptions& options, std::uint64_t run, const SharedMemory& inbox,
                                  Rendezvous& rendezvous, TimePoint deadline);

  // Returns the descriptor that came with `peer`'s hello. Call it once per peer.
  FileDescriptor take_inbox_of(int peer) { return std::move(inboxes_[static_cast<std::size_t>(peer)]); }

  // Sends an arena's memory to this peer, or to every peer, as far as they are still connected.
  Status show_arena(int peer, std::uint64_t number, const SharedMemory& memory);
  Status announce_arena(std::uint64_t number, const SharedMemory& memory);

  // Returns the next parcel that `peer` has sent; nothing if there is none.
  std::optional<ReceivedParcel> next_from(int peer);

  // Returns the peers, not reported before, whose end of the link is closed.
  std::vector<int> newly_lost();

  // The number of rejected connections: those that did not begin as a peer's.
  std::int64_t rejected() const { return rejected_; }

 private:
  // A connection that has not sent its hello yet.
  struct Silent {
    FileDescriptor connection;
    TimePoint due;  // when it is rejected
  };
  // What the members need while they connect.
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
  // Returns whether the connection, which has sent something, is that of a missing peer. If so, it is now a link.
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
  std::vector<pollfd> polled_;           // what newly_lost polls; reused, since waiting threads call it often
  std::int64_t rejected_ = 0;
};

}  // namespace syncopate
