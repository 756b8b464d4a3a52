#include "library/group.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>

#include "allreduce/collective/direct_collective.h"
#include "allreduce/collective/schedule_collective.h"
#include "common/transport/local_socket.h"
#include "common/transport/patient_transport.h"
#include "library/shared_secret.h"

namespace syncopate::library {
namespace {

constexpr char kSeparator = '|';
// How long a process may take to end after its connections have: longer where nothing else says which one it was.
constexpr Duration kEnding = std::chrono::milliseconds(50);
constexpr Duration kUnknownEnding = std::chrono::seconds(1);

// What a rank tells the others of itself.
struct Presence {
  std::string host;    // its name
  std::string kernel;  // equal where processes see each other, and each other's local sockets
  pid_t pid = 0;
  std::string secret_at;  // where rank 0 gives the job's secret
  std::string run_id;     // rank 0's counts

  std::string to_text() const {
    return fmt::format("{1}{0}{2}{0}{3}{0}{4}{0}{5}", kSeparator, host, kernel, pid, secret_at, run_id);
  }
  static Result<Presence> parse(const std::string& text) {
    std::vector<std::string> parts(1);
    for (const char each : text) {
      if (each == kSeparator) {
        parts.emplace_back();
      } else {
        parts.back() += each;
      }
    }
    Presence presence;
    if (parts.size() == 5) {
      const std::string& pid = parts[2];
      const auto [end, error] = std::from_chars(pid.data(), pid.data() + pid.size(), presence.pid);
      if (error == std::errc() && end == pid.data() + pid.size()) {
        presence.host = parts[0];
        presence.kernel = parts[1];
        presence.secret_at = parts[3];
        presence.run_id = parts[4];
        return presence;
      }
    }
    return Status::data_loss("a rank says of itself what this version does not understand");
  }
};

std::string inode_of(const char* path) {
  struct stat status {};
  return stat(path, &status) == 0 ? std::to_string(status.st_ino) : "?";
}

// Containers of one host have one boot id, and namespaces of their own.
std::string kernel_name() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  return fmt::format("{}/{}/{}", boot, inode_of("/proc/self/ns/pid"), inode_of("/proc/self/ns/net"));
}

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  return name;
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

Result<std::shared_ptr<Group>> Group::join(const GroupOptions& options, Rendezvous& rendezvous) {
  if (options.size < 1 || options.rank < 0 || options.rank >= options.size) {
    return Status::invalid_argument(
        fmt::format("rank {} of {}: ranks are 0 to {}", options.rank, options.size, std::max(options.size, 1) - 1));
  }
  if (options.shape && options.wire != Wire::kSockets) {
    return Status::invalid_argument(fmt::format(
        "shape='{}': only sockets can behave like another link; use wire='sockets'", options.shape->to_string()));
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
  Presence own{.host = host_name(), .kernel = kernel_name(), .pid = getpid(), .secret_at = {}, .run_id = {}};
  FileDescriptor listener;
  if (rank() == 0) {
    SYNCOPATE_ASSIGN_OR_RETURN(keys_, RunKeys::make());
    own.secret_at = new_local_name();
    own.run_id = new_local_name();
    SYNCOPATE_ASSIGN_OR_RETURN(listener, listen_locally(own.secret_at));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<std::string> texts,
                             rendezvous_.exchange("ranks", rank(), size(), own.to_text(), due));
  std::vector<Presence> ranks;
  for (const std::string& text : texts) {
    SYNCOPATE_ASSIGN_OR_RETURN(Presence presence, Presence::parse(text));
    if (presence.kernel != own.kernel) {
      return Status::invalid_argument(
          fmt::format("rank {} is on {} and rank {} on {}, or in another container: all ranks must be in one, since "
                      "several hosts are not supported yet",
                      ranks.size(), presence.host, rank(), own.host));
    }
    ranks.push_back(std::move(presence));
  }
  run_id_ = ranks.front().run_id;
  for (int peer = 0; peer < size(); ++peer) {
    const Presence& presence = ranks[static_cast<std::size_t>(peer)];
    ranks_.push_back({.pid = presence.pid, .rank = peer, .name = fmt::format("rank {}", peer), .host = presence.host});
    if (peer != rank()) SYNCOPATE_RETURN_IF_ERROR(watch_->watch(ranks_.back()));
  }
  if (rank() == 0) return give_keys(*keys_, std::move(listener), size(), due).in("giving the job's secret");
  SYNCOPATE_ASSIGN_OR_RETURN(keys_, take_keys(ranks.front().secret_at, rank(), due));
  return Status();
}

TransportOptions Group::endpoint(const std::string& name, int size) const {
  return {.run_id = run_id_, .group = name, .rank = rank(), .size = size, .keys = *keys_, .patience = patience_};
}

Result<std::unique_ptr<Transport>> Group::connect(TransportKind kind, const std::string& name, int size) {
  SYNCOPATE_ASSIGN_OR_RETURN(std::unique_ptr<Transport> transport,
                             make_transport(kind, endpoint(name, size), rendezvous_, deadline()));
  if (link_) transport = std::make_unique<ShapedTransport>(std::move(transport), link_);
  return std::unique_ptr<Transport>(std::make_unique<PatientTransport>(std::move(transport), patience_, clock_));
}

Result<ConnectedCollective> Group::connect_collective(const std::string& name) {
  ConnectedCollective connected;
  if (wire() == Wire::kShm) {
    SYNCOPATE_ASSIGN_OR_RETURN(connected.collective,
                               allreduce::make_direct_collective(endpoint(name, size()), rendezvous_, deadline()));
    return connected;
  }
  SYNCOPATE_ASSIGN_OR_RETURN(connected.transport, connect(TransportKind::kSockets, name, size()));
  connected.collective = allreduce::make_schedule_collective(*connected.transport);
  return connected;
}

Result<std::unique_ptr<Transport>> Group::connect_servers(const std::string& name, int size) {
  return connect(wire_to_servers(wire()), name, size);
}

Status Group::give_secret(int file) const {
  const SecretText text = keys_->to_text();
  const SecretText lines(text.view(), "\n" + run_id_ + "\n");
  // A socket says in errno that its other end has gone, where a pipe raises SIGPIPE, which only Python ignores.
  ssize_t count = send(file, lines.view().data(), lines.view().size(), MSG_NOSIGNAL);
  if (count < 0 && errno == ENOTSOCK) count = write(file, lines.view().data(), lines.view().size());
  if (count == static_cast<ssize_t>(lines.view().size())) return Status();
  return Status::peer_lost("a server ended before it was told what it is to do");
}

std::optional<Loss> Group::loss_behind(const Status& failure, int missed) const {
  const bool is_late = failure.code() == Code::kDeadlineExceeded;
  if (!is_late && failure.code() != Code::kPeerLost && failure.code() != Code::kCancelled) return std::nullopt;
  const Duration patience = is_late ? Duration::zero() : missed >= 0 ? kEnding : kUnknownEnding;
  if (const std::optional<WatchedProcess> ended = watch_->lost(patience)) return Loss{*ended};
  if (missed < 0) return std::nullopt;
  return Loss{ranks_[static_cast<std::size_t>(missed)], failure.code() == Code::kPeerLost};
}

}  // namespace syncopate::library
