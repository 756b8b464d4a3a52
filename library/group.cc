#include "library/group.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "allreduce/collective/direct_collective.h"
#include "allreduce/collective/schedule_collective.h"
#include "allreduce/collective/two_level_collective.h"
#include "allreduce/schedule/algorithms.h"
#include "common/os/local_address.h"
#include "common/transport/local_socket.h"
#include "common/transport/patient_transport.h"
#include "common/transport/secret_file.h"
#include "library/process_input.h"
#include "library/shared_secret.h"

namespace syncopate::library {
namespace {

// How long a process may take to end after its connections have: longer where nothing else says which one it was.
constexpr Duration kEnding = std::chrono::milliseconds(50);
constexpr Duration kUnknownEnding = std::chrono::seconds(1);

// The address by which other hosts reach this one, whose presence is `own`. Where a host's own name is one of its
// loopback interface's, as Debian has it, the others know better what it is.
Result<std::string> address_of(const Presence& own, const std::vector<Presence>& ranks) {
  if (!is_loopback(own.address) && !own.address.empty()) return own.address;
  for (const Presence& rank : ranks) {
    const bool knows = rank.kernel != own.kernel && !rank.meets_at.empty() && !is_loopback(rank.meets_at);
    if (knows && check_own_address(rank.meets_at).ok()) return rank.meets_at;
  }
  return Status::invalid_argument(fmt::format(
      "ranks are on several hosts, and {} knows none of its addresses that the others reach: give MASTER_ADDR as an "
      "address or a name of rank 0's host that all hosts know, not {}, or give each process SYNCOPATE_ADDRESS",
      own.host, own.meets_at.empty() ? "nothing" : own.meets_at));
}

}  // namespace

std::string describe(const Loss& loss) {
  return fmt::format("{} (pid {} on {}) {}", loss.process.name, loss.process.pid, loss.process.host,
                     loss.has_ended ? "is gone" : "has not come in time");
}

Result<Wire> parse_wire(std::string_view text) {
  if (text == "shm") return Wire::kShm;
  if (text == "sockets") return Wire::kSockets;
  return Status::invalid_argument(fmt::format("wire='{}': must be 'shm' or 'sockets'", text));
}

TransportKind wire_to_servers(Wire wire) { return wire == Wire::kShm ? TransportKind::kShm : TransportKind::kTcp; }

void reach_other_hosts(TransportOptions& endpoint, const std::string& address) {
  if (address.empty()) return;
  endpoint.host = address;
}

Result<std::shared_ptr<Group>> Group::join(const GroupOptions& options, Rendezvous& rendezvous) {
  if (options.size < 1 || options.rank < 0 || options.rank >= options.size) {
    return Status::invalid_argument(
        fmt::format("rank {} of {}: ranks are 0 to {}", options.rank, options.size, std::max(options.size, 1) - 1));
  }
  if (!options.members.empty() && options.members.size() != static_cast<std::size_t>(options.size)) {
    return Status::invalid_argument(fmt::format("{} members are not {} ranks", options.members.size(), options.size));
  }
  std::shared_ptr<Group> group(new Group(options, rendezvous));
  SYNCOPATE_RETURN_IF_ERROR(group->meet());
  return group;
}

Status Group::meet() {
  patience_->set_timeout(options_.timeout);
  if (options_.shape) link_ = std::make_shared<ProcessLink>(*options_.shape);
  SYNCOPATE_ASSIGN_OR_RETURN(watch_, PeerWatch::start());
  const TimePoint due = deadline();
  SYNCOPATE_ASSIGN_OR_RETURN(Presence own, Presence::of_this_process(options_.meets_at, options_.address));
  FileDescriptor listener;
  if (rank() == 0) {
    own.secret_at = new_local_name();
    own.run_id = new_local_name();
    SYNCOPATE_ASSIGN_OR_RETURN(listener, listen_locally(own.secret_at));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<std::string> texts,
                             rendezvous_.exchange("ranks", rank(), size(), own.to_text(), due));
  if (texts[static_cast<std::size_t>(rank())] != own.to_text()) return forged("what stands for this rank");
  std::vector<Presence> ranks;
  for (const std::string& text : texts) {
    SYNCOPATE_ASSIGN_OR_RETURN(Presence presence, Presence::parse(text));
    ranks.push_back(std::move(presence));
  }
  run_id_ = ranks.front().run_id;
  std::map<std::string, std::size_t> hosts;  // by kernel
  for (int peer = 0; peer < size(); ++peer) {
    const Presence& presence = ranks[static_cast<std::size_t>(peer)];
    const auto [host, is_new] = hosts.try_emplace(presence.kernel, hosts_.size());
    if (is_new) {
      first_ranks_.push_back(peer);
      hosts_.emplace_back();
    }
    hosts_[host->second].push_back(peer);
    const int member = options_.members.empty() ? peer : options_.members[static_cast<std::size_t>(peer)];
    ranks_.push_back({.pid = presence.pid,
                      .rank = member,
                      .name = fmt::format("rank {}", member),
                      .host = presence.host,
                      .is_here = presence.kernel == own.kernel,
                      .index = peer});
    if (peer != rank() && ranks_.back().is_here) SYNCOPATE_RETURN_IF_ERROR(watch_->watch(ranks_.back()));
  }
  SYNCOPATE_RETURN_IF_ERROR(choose_wire(ranks));
  if (first_ranks_.size() == 1) {
    SYNCOPATE_RETURN_IF_ERROR(share_secret(ranks.front().secret_at, std::move(listener), due));
    return confirm(texts, due);
  }
  SYNCOPATE_ASSIGN_OR_RETURN(address_, address_of(ranks[static_cast<std::size_t>(rank())], ranks));
  SYNCOPATE_ASSIGN_OR_RETURN(const SecretText secret, read_secret_file(options_.secret_file));
  SYNCOPATE_ASSIGN_OR_RETURN(keys_, RunKeys::of_job(secret, run_id_));
  const auto with_advice = [](const Status& status) {
    return status.in("connecting the hosts (is SYNCOPATE_SECRET_FILE the same on all of them?)");
  };
  if (const Status confirmed = confirm(texts, due); !confirmed.ok()) return with_advice(confirmed);
  Result<std::unique_ptr<HostWatch>> watch =
      HostWatch::start(endpoint("watch", size()), rendezvous(), ranks_, *watch_, options_.timeout, due);
  if (!watch.ok()) return with_advice(watch.status());
  host_watch_ = std::move(*watch);
  return Status();
}

// What ranks have said of themselves before they had a secret in common, they say again with a proof.
Status Group::confirm(const std::vector<std::string>& presences, TimePoint due) {
  proven_.emplace(rendezvous_, *keys_);
  const auto own = static_cast<std::size_t>(rank());
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<std::string> said,
                             proven_->exchange("ranks again", rank(), size(), presences[own], due));
  for (std::size_t peer = 0; peer < said.size(); ++peer) {
    if (said[peer] != presences[peer]) return forged(fmt::format("what stood first for rank {}", peer));
  }
  return Status();
}

// How ranks are connected, and whether they can be.
Status Group::choose_wire(const std::vector<Presence>& ranks) {
  const bool several = first_ranks_.size() > 1;
  wire_ = options_.wire.value_or(several ? Wire::kSockets : Wire::kShm);
  const auto where = [&] {
    const auto second = static_cast<std::size_t>(first_ranks_[1]);
    return fmt::format("rank 0 is on {} and rank {} on {}, or in another container", ranks.front().host,
                       first_ranks_[1], ranks[second].host);
  };
  if (several && wire_ == Wire::kShm) {
    return Status::invalid_argument(
        fmt::format("wire='shm': {}, and hosts share no memory; use wire='sockets', or leave it out", where()));
  }
  if (several && options_.secret_file.empty()) {
    return Status::invalid_argument(fmt::format(
        "{}: several hosts need a secret in common. Make one, (umask 077; head -c 32 /dev/urandom >FILE), copy it to "
        "all hosts, and give each process SYNCOPATE_SECRET_FILE=FILE",
        where()));
  }
  if (options_.shape && wire_ != Wire::kSockets) {
    return Status::invalid_argument(fmt::format(
        "shape='{}': only sockets can behave like another link; use wire='sockets'", options_.shape->to_string()));
  }
  return Status();
}

// On one host rank 0 makes the secret, and gives it to the others.
Status Group::share_secret(const std::string& at, FileDescriptor listener, TimePoint due) {
  if (rank() != 0) {
    Result<RunKeys> keys = take_keys(at, rank(), due);
    if (!keys.ok()) return keys.status().in("taking the job's secret from rank 0");
    keys_ = std::move(*keys);
    return Status();
  }
  SYNCOPATE_ASSIGN_OR_RETURN(keys_, RunKeys::make());
  return give_keys(*keys_, std::move(listener), size(), due).in("giving the job's secret");
}

TransportOptions Group::endpoint(const std::string& name, int size) const {
  TransportOptions options{.run_id = run_id_,
                           .group = name,
                           .rank = rank(),
                           .size = size,
                           .keys = *keys_,
                           .encrypted = true,
                           .patience = patience_};
  reach_other_hosts(options, address_);
  return options;
}

Result<std::unique_ptr<Transport>> Group::connect(TransportKind kind, const std::string& name, int size) {
  SYNCOPATE_ASSIGN_OR_RETURN(std::unique_ptr<Transport> transport,
                             make_transport(kind, endpoint(name, size), rendezvous(), deadline()));
  if (link_) transport = std::make_unique<ShapedTransport>(std::move(transport), link_);
  return std::unique_ptr<Transport>(std::make_unique<PatientTransport>(std::move(transport), patience_, clock_));
}

Result<ConnectedCollective> Group::connect_collective(const std::string& name, bool in_halves) {
  ConnectedCollective connected;
  const int number = collectives_++;
  if (wire() == Wire::kShm) {
    SYNCOPATE_ASSIGN_OR_RETURN(connected.collective,
                               allreduce::make_direct_collective(endpoint(name, size()), rendezvous(), deadline()));
    return connected;
  }
  if (sums_on_two_levels() && !in_halves) {
    SYNCOPATE_ASSIGN_OR_RETURN(connected.inside, connect_inside_host(name));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(connected.transport, connect(TransportKind::kSockets, name, size()));
  using Kind = allreduce::ScheduleKind;
  std::unique_ptr<allreduce::ScheduleCollective> all = allreduce::make_schedule_collective(
      *connected.transport, {.kind = connected.inside ? Kind::kHierarchical : Kind::kRing,
                             .ranks_by_host = hosts_,
                             .tracer = tracer(),
                             .number = number});
  if (connected.inside) {
    connected.collective = allreduce::make_two_level_collective(*connected.inside, std::move(all));
  } else {
    connected.collective = std::move(all);
  }
  return connected;
}

bool Group::sums_on_two_levels() const { return hosts_.size() > 1 && hosts_.size() < ranks_.size() && !options_.shape; }

Result<std::unique_ptr<allreduce::DirectCollective>> Group::connect_inside_host(const std::string& name) {
  const std::size_t host = allreduce::host_of(rank(), hosts_);
  const std::vector<int>& members = hosts_[host];
  TransportOptions options = endpoint(fmt::format("{} on host {}", name, host), static_cast<int>(members.size()));
  options.rank = static_cast<int>(std::ranges::find(members, rank()) - members.begin());
  return allreduce::make_direct_collective(options, rendezvous(), deadline(), members);
}

Result<std::unique_ptr<Transport>> Group::connect_servers(const std::string& name, int size) {
  return connect(wire_to_servers(wire()), name, size);
}

std::vector<int> Group::servers_to_start(int servers) const {
  std::vector<int> own;
  for (int server = 0; server < servers; ++server) {
    if (first_ranks_[static_cast<std::size_t>(server) % first_ranks_.size()] == rank()) own.push_back(server);
  }
  return own;
}

Status Group::give_secret(int file) const {
  const SecretText text = keys_->to_text();
  const SecretText lines(text.view(), "\n" + run_id_ + "\n");
  if (write_to_process(file, lines.view())) return Status();
  return Status::peer_lost("a server ended before it was told what it is to do");
}

std::optional<Loss> Group::loss_behind(const Status& failure, int missed) const {
  const bool is_late = failure.code() == Code::kDeadlineExceeded;
  if (!is_late && failure.code() != Code::kPeerLost && failure.code() != Code::kCancelled) return std::nullopt;
  const Duration patience = is_late ? Duration::zero() : missed >= 0 ? kEnding : kUnknownEnding;
  if (const std::optional<Loss> known = watch_->lost(patience)) return known;
  if (missed < 0) return std::nullopt;
  return Loss{ranks_[static_cast<std::size_t>(missed)], failure.code() == Code::kPeerLost};
}

}  // namespace syncopate::library
