// HostWatch: tells the ranks of several hosts of each other's losses. Each rank has a connection to each of the others,
// which children that it forks do not hold, and a thread that sleeps. A process's end ends its connections, and is
// known at once. Each says every so often that it is alive: one that is not heard of for half of the timeout is given
// up, which is how a host that is cut off is noticed. A rank passes on what it alone sees, the end of a parameter
// server that it has started.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "common/clock.h"
#include "common/os/closed_in_children.h"
#include "common/rendezvous.h"
#include "common/transport/make_transport.h"
#include "common/transport/socket_stream.h"
#include "library/peer_watch.h"

namespace syncopate::library {

class HostWatch {
 public:
  // An operation of all ranks. `ranks` are these, by rank, of which those of other hosts are watched; `watch` learns
  // what is noticed, and must outlive this. Fails as make_transport does.
  static Result<std::unique_ptr<HostWatch>> start(const TransportOptions& endpoint, Rendezvous& rendezvous,
                                                  const std::vector<WatchedProcess>& ranks, PeerWatch& watch,
                                                  Duration timeout, TimePoint deadline);
  ~HostWatch();

 private:
  struct Peer {
    Peer(WatchedProcess process, std::unique_ptr<SocketStream> connection, TimePoint now)
        : rank(std::move(process)), stream(std::move(connection)), closed(stream->descriptor()), heard(now) {}

    const WatchedProcess rank;
    const std::unique_ptr<SocketStream> stream;
    const ClosedInChildren closed;
    TimePoint heard;       // when it last said something
    std::string begun;     // of a line that has not come whole
    std::string unsent;    // what the network has not taken yet
    bool is_over = false;  // lost, or not watched any more
  };

  HostWatch(PeerWatch& watch, Duration timeout);

  void loop();
  void poll_peers(TimePoint until);
  void hear(Peer& peer);
  void hear_line(Peer& peer, std::string_view line);
  void lose(Peer& peer, bool has_ended);
  void say(std::string_view line);
  void pass_on_losses();

  PeerWatch& watch_;
  const Duration timeout_;
  const FileDescriptor wake_;  // an eventfd: a loss is known, or it ends
  const SteadyClock clock_;
  std::list<Peer> peers_;      // on other hosts; used by the thread, once it runs
  std::size_t passed_on_ = 0;  // of the losses that watch_ knows
  std::uint64_t subscription_ = 0;
  std::jthread thread_;  // last: it works on all of the above
};

}  // namespace syncopate::library
