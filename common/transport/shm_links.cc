#include "common/transport/shm_links.h"

#include <fmt/format.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace syncopate {
namespace {

// How often somebody who waits for peers asks whether they still are to come.
constexpr std::chrono::milliseconds kGlance{50};
// Connections that have not said hello yet. Of more, the one that has been silent for longest is turned away.
constexpr std::size_t kMostSilent = 256;

Status refusal(const char* what) {
  // Its listener, or its end of a connection, has gone with it.
  const bool is_gone = errno == EPIPE || errno == ECONNRESET || errno == ECONNREFUSED;
  return Status(is_gone ? Code::kPeerLost : Code::kInternal,
                fmt::format("{} a local socket: {}", what, strerror(errno)));
}

// Names in the abstract namespace begin with a zero byte and have no end mark.
socklen_t fill_abstract(sockaddr_un& address, const std::string& name) {
  address = {};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof(address.sun_path) - 1);
  std::memcpy(address.sun_path + 1, name.data(), length);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
}

Result<FileDescriptor> new_socket() {
  FileDescriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket.open()) return refusal("opening");
  return socket;
}

bool send_parcel(int link, const ShmLinks::Parcel& parcel, int file) {
  iovec data{const_cast<ShmLinks::Parcel*>(&parcel), sizeof(parcel)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &file, sizeof(file));
  return sendmsg(link, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof(parcel));
}

std::optional<ShmLinks::Received> receive_parcel(int link, int flags) {
  ShmLinks::Received received;
  iovec data{&received.parcel, sizeof(received.parcel)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t bytes = recvmsg(link, &message, flags | MSG_CMSG_CLOEXEC);
  // Of a peer that has died and had not read all that we sent, the kernel says so once, before it gives what came.
  if (bytes < 0 && errno == ECONNRESET) bytes = recvmsg(link, &message, flags | MSG_CMSG_CLOEXEC);
  if (bytes <= 0) return std::nullopt;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS) {
    int file = -1;
    std::memcpy(&file, CMSG_DATA(header), sizeof(file));
    received.file = FileDescriptor(file);
  }
  if (bytes != static_cast<ssize_t>(sizeof(received.parcel)) || !received.file.open()) return std::nullopt;
  return received;
}

// Waits until one of them can be read. Fails with deadline exceeded, saying `missing`, and with cancelled where there
// is nobody to wait for any more.
Status wait_for_any(std::vector<pollfd>& items, const std::string& missing, const Rendezvous& rendezvous,
                    TimePoint deadline) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock().now());
    if (rendezvous.is_off()) return Status(Code::kCancelled, missing);
    if (left.count() <= 0) return Status(Code::kDeadlineExceeded, missing);
    const int ready = poll(items.data(), items.size(), static_cast<int>(std::min(left, kGlance).count()));
    if (ready > 0) return Status();
    if (ready < 0 && errno != EINTR) return refusal("waiting for");
  }
}

// Abstract names have no permissions: the kernel's word for who is at the other end stands in for them.
bool is_of_own_user(int connection) {
  ucred other{};
  socklen_t size = sizeof(other);
  return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 && other.uid == geteuid();
}

}  // namespace

ShmLinks::ShmLinks(int rank, int size, std::uint64_t run)
    : rank_(static_cast<std::uint32_t>(rank)),
      run_(run),
      links_(static_cast<std::size_t>(size)),
      inboxes_(static_cast<std::size_t>(size)),
      lost_(static_cast<std::size_t>(size), false) {
  polled_.reserve(lost_.size());
}

Result<ShmLinks> ShmLinks::connect(const TransportOptions& options, std::uint64_t run, const SharedMemory& inbox,
                                   Rendezvous& rendezvous, TimePoint deadline) {
  ShmLinks links(options.rank, options.size, run);
  Result<FileDescriptor> listener = new_socket();
  if (!listener.ok()) return listener.status();
  const std::string name = fmt::format("syncopate-{}-{}-{}", options.run_id, options.group, options.rank);
  sockaddr_un address;
  const socklen_t length = fill_abstract(address, name);
  if (bind(listener->get(), reinterpret_cast<sockaddr*>(&address), length) != 0) return refusal("binding");
  if (listen(listener->get(), SOMAXCONN) != 0) return refusal("listening on");

  Result<std::vector<std::string>> names =
      rendezvous.exchange(options.group, options.rank, options.size, name, deadline);
  if (!names.ok()) return names.status();

  // To those below, we connect; those above connect to us. Connecting does not wait for the other to accept.
  for (int peer = 0; peer < options.rank; ++peer) {
    SYNCOPATE_RETURN_IF_ERROR(
        links.connect_to(peer, (*names)[static_cast<std::size_t>(peer)], inbox).in(fmt::format("peer {}", peer)));
  }
  SYNCOPATE_RETURN_IF_ERROR(links.accept_missing(listener->get(), inbox, rendezvous, deadline));
  for (int peer = 0; peer < options.rank; ++peer)
    SYNCOPATE_RETURN_IF_ERROR(links.take_answer_of(peer, rendezvous, deadline));
  return links;
}

Status ShmLinks::connect_to(int peer, const std::string& name, const SharedMemory& inbox) {
  Result<FileDescriptor> connection = new_socket();
  if (!connection.ok()) return connection.status();
  sockaddr_un address;
  const socklen_t length = fill_abstract(address, name);
  if (::connect(connection->get(), reinterpret_cast<sockaddr*>(&address), length) != 0) return refusal("connecting");
  if (!is_of_own_user(connection->get())) return Status(Code::kPeerLost, "another user listens in its name");
  if (!send_parcel(connection->get(), {Kind::kHello, rank_, run_, 0}, inbox.file().get())) return refusal("connecting");
  link(peer) = std::move(*connection);
  return Status();
}

Status ShmLinks::accept_missing(int listener, const SharedMemory& inbox, const Rendezvous& rendezvous,
                                TimePoint deadline) {
  std::vector<FileDescriptor> silent;  // connections that have said nothing yet
  for (std::size_t missing = links_.size() - 1 - rank_; missing > 0;) {
    std::vector<pollfd> items{{listener, POLLIN, 0}};
    for (const FileDescriptor& connection : silent) items.push_back({connection.get(), POLLIN, 0});
    SYNCOPATE_RETURN_IF_ERROR(
        wait_for_any(items, fmt::format("{} peers have not connected", missing), rendezvous, deadline));
    for (std::size_t i = silent.size(); i > 0; --i) {
      if (items[i].revents == 0) continue;
      if (admit(std::move(silent[i - 1]), inbox)) --missing;
      silent.erase(silent.begin() + static_cast<std::ptrdiff_t>(i - 1));
    }
    if (items[0].revents == 0) continue;
    FileDescriptor connection(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection.open()) continue;
    if (is_of_own_user(connection.get())) {
      silent.push_back(std::move(connection));
    } else {
      turn_away();
    }
    if (silent.size() > kMostSilent) {
      silent.erase(silent.begin());
      turn_away();
    }
  }
  return Status();
}

bool ShmLinks::admit(FileDescriptor connection, const SharedMemory& inbox) {
  std::optional<Received> received = receive_parcel(connection.get(), MSG_DONTWAIT);
  const std::uint32_t peer = received ? received->parcel.sender : 0;
  const bool is_due = received && received->parcel.kind == Kind::kHello && received->parcel.run == run_ &&
                      peer > rank_ && peer < links_.size() && !links_[peer].open();
  if (!is_due || !send_parcel(connection.get(), {Kind::kHello, rank_, run_, 0}, inbox.file().get())) {
    turn_away();
    return false;
  }
  links_[peer] = std::move(connection);
  inboxes_[peer] = std::move(received->file);
  return true;
}

Status ShmLinks::take_answer_of(int peer, const Rendezvous& rendezvous, TimePoint deadline) {
  std::vector<pollfd> items{{link(peer).get(), POLLIN, 0}};
  SYNCOPATE_RETURN_IF_ERROR(wait_for_any(items, fmt::format("peer {} has not answered", peer), rendezvous, deadline));
  std::optional<Received> received = receive_parcel(link(peer).get(), 0);
  if (!received || received->parcel.kind != Kind::kHello || received->parcel.run != run_) {
    return Status(Code::kPeerLost, fmt::format("peer {} is gone", peer));
  }
  inboxes_[static_cast<std::size_t>(peer)] = std::move(received->file);
  return Status();
}

void ShmLinks::turn_away() {
  if (turned_away_++ == 0) spdlog::warn("shm endpoint {}: turned away a connection that is no peer's", rank_);
}

Status ShmLinks::announce_arena(std::uint64_t number, const SharedMemory& memory) {
  const Parcel parcel{Kind::kArena, rank_, run_, number};
  for (const FileDescriptor& link : links_) {
    if (!link.open() || send_parcel(link.get(), parcel, memory.file().get())) continue;
    if (errno != EPIPE && errno != ECONNRESET) return refusal("passing memory over");  // a lost peer needs none
  }
  return Status();
}

std::optional<ShmLinks::Received> ShmLinks::next_from(int peer) {
  std::optional<Received> received = receive_parcel(link(peer).get(), MSG_DONTWAIT);
  if (received && (received->parcel.run != run_ || received->parcel.kind != Kind::kArena)) return std::nullopt;
  return received;
}

std::vector<int> ShmLinks::newly_lost() {
  polled_.clear();
  for (std::size_t peer = 0; peer < links_.size(); ++peer) {
    polled_.push_back({lost_[peer] ? -1 : links_[peer].get(), POLLRDHUP, 0});
  }
  std::vector<int> peers;
  if (poll(polled_.data(), polled_.size(), 0) <= 0) return peers;
  for (std::size_t peer = 0; peer < polled_.size(); ++peer) {
    if ((polled_[peer].revents & (POLLRDHUP | POLLHUP | POLLERR)) == 0) continue;
    lost_[peer] = true;
    peers.push_back(static_cast<int>(peer));
  }
  return peers;
}

}  // namespace syncopate
