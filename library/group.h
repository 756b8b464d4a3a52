// Group: the ranks of a job, as one of them knows the others. It brings about what they communicate by, and
// notices the loss of one.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "allreduce/collective.h"
#include "allreduce/collective/direct_collective.h"
#include "allreduce/schedule/schedule.h"
#include "common/patience.h"
#include "common/rendezvous.h"
#include "common/status.h"
#include "common/trace/tracer.h"
#include "common/transport/link_shape.h"
#include "common/transport/make_transport.h"
#include "common/transport/shaped_transport.h"
#include "library/host_watch.h"
#include "library/peer_watch.h"
#include "library/presence.h"
#include "library/value_proof.h"

namespace syncopate::library {

// How ranks are connected: by shared memory, on one host, or by sockets, of the loopback interface on one host.
enum class Wire { kShm, kSockets };

// "shm" or "sockets".
Result<Wire> parse_wire(std::string_view text);
// Between a rank that computes and servers, ZeroMQ's threads move the bytes of sockets.
TransportKind wire_to_servers(Wire wire);
// Has the endpoint listen at `address`, for members on other hosts; leaves it alone where that is empty.
void reach_other_hosts(TransportOptions& endpoint, const std::string& address);

struct GroupOptions {
  int rank = 0;
  int size = 1;
  std::optional<Wire> wire = {};                // none: shared memory on one host, sockets between several
  Duration timeout = std::chrono::seconds(30);  // of each wait for another rank
  std::optional<LinkShape> shape = {};          // the link that this process's sockets are to behave like
  std::vector<int> members =
      {};  // in a job that has lost ranks, what these were when it began, ascending; empty: the same
  // For ranks on several hosts, and unused on one:
  std::string meets_at = {};     // the host at which the ranks meet, that of rank 0: a name or an address
  std::string address = {};      // by which other hosts reach this one; empty: that of the way to meets_at
  std::string secret_file = {};  // what the ranks of a job prove themselves by (read_secret_file), alike on all hosts
  std::shared_ptr<Tracer> tracer = {};  // records what goes between ranks and servers; null: nothing is recorded
};

// Returns a text such as "rank 1 (pid 4711 on node1) is gone".
std::string describe(const Loss& loss);

// A collective, and what it needs to live.
struct ConnectedCollective {
  // The ranks of this host, if they sum in shared memory first. The transport sends from its memory.
  std::unique_ptr<allreduce::DirectCollective> inside;
  std::unique_ptr<Transport> transport;  // null if the collective has a wire of its own
  std::unique_ptr<allreduce::Collective> collective;
};

class Group {
 public:
  // Every rank calls it. `rendezvous` must outlive the group. Fails with invalid argument, saying what would be right,
  // if there is a shape without sockets, and where ranks on several hosts have no secret in common, no address by which
  // others reach them, or are to share memory; and as the rendezvous does.
  static Result<std::shared_ptr<Group>> join(const GroupOptions& options, Rendezvous& rendezvous);

  int rank() const { return options_.rank; }
  int size() const { return options_.size; }
  // What the ranks were when the job began, ascending; empty: the same.
  const std::vector<int>& members() const { return options_.members; }
  // How long each wait for another rank may last. Any thread; a new value counts for operations that begin from then
  // on.
  Duration timeout() const { return patience_->timeout(); }
  void set_timeout(Duration timeout) { patience_->set_timeout(timeout); }
  TimePoint deadline() const { return clock_.now() + timeout(); }
  const Clock& clock() const { return clock_; }
  Wire wire() const { return wire_; }
  const std::optional<LinkShape>& shape() const { return options_.shape; }
  const WatchedProcess& process_of(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
  // The address that other hosts reach this one by; empty where all ranks are on one.
  const std::string& address() const { return address_; }

  // Null where nothing is traced.
  Tracer* tracer() const { return options_.tracer.get(); }
  // The same for the first who asks, and null for others: pushes of several optimizers cannot be told from each other.
  // Asked for in the same order on all ranks.
  Tracer* take_server_tracer() { return std::exchange(are_servers_traced_, true) ? nullptr : tracer(); }

  // Operations of all ranks, with the same name, which is used once in a group's life. On several hosts of which one
  // has several ranks the collective is on two levels (allreduce/collective/two_level_collective.h), unless each
  // process has an emulated link; else it is direct in shared memory, or a ring over sockets. `in_halves`: it has
  // reduce_scatter and all_gather, which one on two levels has not.
  Result<ConnectedCollective> connect_collective(const std::string& name, bool in_halves = false);
  // Messages between `size` members: the ranks, and servers behind them, each of which connects with what
  // give_secret() has told it (server.h).
  Result<std::unique_ptr<Transport>> connect_servers(const std::string& name, int size);
  // Which of `servers` this rank starts: the lowest rank of each host starts those of its host, on which servers lie in
  // turn.
  std::vector<int> servers_to_start(int servers) const;
  // Writes what a server needs to be admitted to `file`, a pipe or a socket to it: the job's secret, and its name, a
  // line each.
  Status give_secret(int file) const;
  // Proves what this rank says, and believes nothing without a proof: others can write where ranks meet.
  Rendezvous& rendezvous() { return *proven_; }
  const RunKeys& keys() const { return *keys_; }

  PeerWatch& watch() { return *watch_; }
  // Returns the process whose loss explains a failure; none if it has another reason. `missed` is the rank that the
  // operation waited for; -1 if unknown.
  std::optional<Loss> loss_behind(const Status& failure, int missed) const;

 private:
  Group(const GroupOptions& options, Rendezvous& rendezvous) : options_(options), rendezvous_(rendezvous) {}
  Status meet();
  Status choose_wire(const std::vector<Presence>& ranks);
  Status share_secret(const std::string& at, FileDescriptor listener, TimePoint due);
  Status confirm(const std::vector<std::string>& presences, TimePoint due);
  TransportOptions endpoint(const std::string& name, int size) const;
  Result<std::unique_ptr<Transport>> connect(TransportKind kind, const std::string& name, int size);
  bool sums_on_two_levels() const;
  // Connects this rank in shared memory with the others of its host.
  Result<std::unique_ptr<allreduce::DirectCollective>> connect_inside_host(const std::string& name);

  const GroupOptions options_;
  Rendezvous& rendezvous_;
  const SteadyClock clock_;
  std::shared_ptr<Patience> patience_ = std::make_shared<Patience>();
  std::shared_ptr<ProcessLink> link_;  // of all connections; null without a shape
  Wire wire_ = Wire::kShm;
  std::string address_;
  std::string run_id_;
  int collectives_ = 0;  // connected so far
  bool are_servers_traced_ = false;
  std::vector<WatchedProcess> ranks_;
  std::vector<int> first_ranks_;  // the lowest of each host
  allreduce::RanksByHost hosts_;  // in the order of these
  std::optional<RunKeys> keys_;
  std::optional<ProvenRendezvous> proven_;  // once there are keys
  std::unique_ptr<PeerWatch> watch_;
  std::unique_ptr<HostWatch> host_watch_;  // null on one host
};

// While it lives, the loss of a process interrupts what `interrupt` ends the waits of; it may be called more than once.
class InterruptedByLoss {
 public:
  InterruptedByLoss(Group& group, std::function<void()> interrupt, LossesOf which = LossesOf::kAll)
      : watch_(group.watch()), number_(watch_.subscribe(std::move(interrupt), which)) {}
  ~InterruptedByLoss() { watch_.unsubscribe(number_); }
  InterruptedByLoss(const InterruptedByLoss&) = delete;
  InterruptedByLoss& operator=(const InterruptedByLoss&) = delete;

 private:
  PeerWatch& watch_;
  const std::uint64_t number_;
};

}  // namespace syncopate::library
