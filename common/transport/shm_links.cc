#include "common/transport/shm_links.h"

#include <fmt/format.h>
#include <sodium.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/os/readiness.h"
#include "common/text/log.h"
#include "common/transport/local_socket.h"
#include "common/transport/waits.h"

namespace syncopate {
namespace {

// Connections that have not said hello yet. Of more, the one that has been silent for longest is turned away.
constexpr std::size_t kMostSilent = 256;

// Fails with deadline exceeded, saying `missing`, and with cancelled where there is nobody to wait for any more.
Status check_time(const std::string& missing, const Rendezvous& rendezvous, TimePoint deadline) {
  if (rendezvous.is_off()) return Status::cancelled(missing);
  if (SteadyClock().now() >= deadline) return Status::deadline_exceeded(missing);
  return Status();
}

// Waits until one of them can be read, for a glance at most.
void glance_at(std::vector<pollfd>& items, TimePoint deadline) {
  ready_before(std::min(deadline, SteadyClock().now() + kLookUpEvery), items);
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
  const std::string name = new_local_name();
  SYNCOPATE_ASSIGN_OR_RETURN(FileDescriptor listener, listen_locally(name));
  Acceptor acceptor(std::move(listener), fmt::format("shm endpoint {}", options.rank));

  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<std::string> names,
                             rendezvous.exchange(options.group, options.rank, options.size, name, deadline));

  // To those below, we connect; those above connect to us. Connecting does not wait for the other to accept.
  const Meeting meeting{options, inbox, rendezvous, deadline};
  for (int peer = 0; peer < options.rank; ++peer) {
    SYNCOPATE_RETURN_IF_ERROR(
        links.connect_to(peer, names[static_cast<std::size_t>(peer)], meeting).in(fmt::format("peer {}", peer)));
  }
  SYNCOPATE_RETURN_IF_ERROR(links.accept_missing(acceptor, meeting));
  for (int peer = 0; peer < options.rank; ++peer) SYNCOPATE_RETURN_IF_ERROR(links.take_answer_of(peer, meeting));
  return links;
}

Status ShmLinks::connect_to(int peer, const std::string& name, const Meeting& meeting) {
  const auto check = [&] { return check_time("too many others connect to it", meeting.rendezvous, meeting.deadline); };
  SYNCOPATE_ASSIGN_OR_RETURN(FileDescriptor connection, connect_locally(name, check));
  if (!send_parcel(connection.get(), hello_to(peer, meeting.options), meeting.inbox.file().get())) {
    return local_socket_failure("connecting");
  }
  link(peer) = std::move(connection);
  return Status();
}

Status ShmLinks::accept_missing(Acceptor& acceptor, const Meeting& meeting) {
  std::vector<Silent> silent;
  for (std::size_t missing = links_.size() - 1 - rank_; missing > 0;) {
    SYNCOPATE_RETURN_IF_ERROR(check_time(who_is_missing() + acceptor.shortage(), meeting.rendezvous, meeting.deadline));
    std::vector<pollfd> items{{acceptor.to_poll(), POLLIN, 0}};
    for (const Silent& each : silent) items.push_back({each.connection.get(), POLLIN, 0});
    glance_at(items, meeting.deadline);
    const TimePoint now = SteadyClock().now();
    for (std::size_t i = silent.size(); i > 0; --i) {
      const bool has_spoken = items[i].revents != 0;
      if (!has_spoken && now < silent[i - 1].due) continue;
      if (!has_spoken) turn_away();
      if (has_spoken && admit(std::move(silent[i - 1].connection), meeting)) --missing;
      silent.erase(silent.begin() + static_cast<std::ptrdiff_t>(i - 1));
    }
    if (items[0].revents != 0) accept_all(acceptor, silent, meeting.options.handshake_time);
  }
  return Status();
}

void ShmLinks::accept_all(Acceptor& acceptor, std::vector<Silent>& silent, Duration handshake_time) {
  while (true) {
    FileDescriptor connection = acceptor.accept(0);
    const bool is_taken = connection.open();
    if (is_taken && !is_of_own_user(connection.get())) {
      turn_away();
    } else if (is_taken) {
      silent.push_back({std::move(connection), SteadyClock().now() + handshake_time});
    }
    if (silent.size() > (acceptor.is_short() ? 0 : kMostSilent)) {
      silent.erase(silent.begin());
      turn_away();
    }
    if (!is_taken) return;
  }
}

bool ShmLinks::admit(FileDescriptor connection, const Meeting& meeting) {
  std::optional<ReceivedParcel> received = receive_parcel(connection.get(), MSG_DONTWAIT);
  const std::uint32_t peer = received ? received->parcel.sender : 0;
  const bool is_due = received && peer > rank_ && peer < links_.size() && !links_[peer].open() &&
                      is_hello_of(static_cast<int>(peer), received->parcel, meeting.options);
  if (!is_due ||
      !send_parcel(connection.get(), hello_to(static_cast<int>(peer), meeting.options), meeting.inbox.file().get())) {
    turn_away();
    return false;
  }
  links_[peer] = std::move(connection);
  inboxes_[peer] = std::move(received->file);
  return true;
}

Status ShmLinks::take_answer_of(int peer, const Meeting& meeting) {
  std::vector<pollfd> items{{link(peer).get(), POLLIN, 0}};
  while (items[0].revents == 0) {
    SYNCOPATE_RETURN_IF_ERROR(
        check_time(fmt::format("peer {} has not answered", peer), meeting.rendezvous, meeting.deadline));
    glance_at(items, meeting.deadline);
  }
  std::optional<ReceivedParcel> received = receive_parcel(link(peer).get(), MSG_DONTWAIT);
  if (!received || !is_hello_of(peer, received->parcel, meeting.options)) {
    return Status::peer_lost(fmt::format("peer {} is gone, or is of another run", peer));
  }
  inboxes_[static_cast<std::size_t>(peer)] = std::move(received->file);
  return Status();
}

ShmParcel ShmLinks::hello_to(int peer, const TransportOptions& options) const {
  return {.kind = ShmParcel::Kind::kHello,
          .sender = rank_,
          .run = run_,
          .proof = MemberKeys(options.keys, options.group).proof(static_cast<int>(rank_), peer)};
}

bool ShmLinks::is_hello_of(int peer, const ShmParcel& parcel, const TransportOptions& options) const {
  const MemberKeys::Proof proof = MemberKeys(options.keys, options.group).proof(peer, static_cast<int>(rank_));
  return parcel.kind == ShmParcel::Kind::kHello && parcel.run == run_ &&
         parcel.sender == static_cast<std::uint32_t>(peer) &&
         sodium_memcmp(parcel.proof.data(), proof.data(), proof.size()) == 0;
}

std::string ShmLinks::who_is_missing() const {
  std::vector<std::size_t> ranks;
  for (std::size_t peer = rank_ + 1; peer < links_.size(); ++peer) {
    if (!links_[peer].open()) ranks.push_back(peer);
  }
  return fmt::format("no connection from peer{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
}

void ShmLinks::turn_away() {
  if (rejected_++ == 0)
    log_warning("shm endpoint {}: rejected a connection that did not prove to be of this run, or ended before", rank_);
}

Status ShmLinks::show_arena(int peer, std::uint64_t number, const SharedMemory& memory) {
  const ShmParcel parcel{.kind = ShmParcel::Kind::kArena, .sender = rank_, .run = run_, .number = number};
  if (!link(peer).open() || send_parcel(link(peer).get(), parcel, memory.file().get())) return Status();
  if (errno == EPIPE || errno == ECONNRESET) return Status();  // a lost peer needs none
  return local_socket_failure("passing memory over");
}

Status ShmLinks::announce_arena(std::uint64_t number, const SharedMemory& memory) {
  for (std::size_t peer = 0; peer < links_.size(); ++peer) {
    SYNCOPATE_RETURN_IF_ERROR(show_arena(static_cast<int>(peer), number, memory));
  }
  return Status();
}

std::optional<ReceivedParcel> ShmLinks::next_from(int peer) {
  std::optional<ReceivedParcel> received = receive_parcel(link(peer).get(), MSG_DONTWAIT);
  if (received && (received->parcel.run != run_ || received->parcel.kind != ShmParcel::Kind::kArena))
    return std::nullopt;
  return received;
}

std::vector<int> ShmLinks::newly_lost() {
  polled_.clear();
  for (std::size_t peer = 0; peer < links_.size(); ++peer) {
    polled_.push_back({lost_[peer] ? -1 : links_[peer].get(), POLLRDHUP, 0});
  }
  std::vector<int> peers;
  if (!ready_before(TimePoint::min(), polled_)) return peers;
  for (std::size_t peer = 0; peer < polled_.size(); ++peer) {
    if ((polled_[peer].revents & (POLLRDHUP | POLLHUP | POLLERR)) == 0) continue;
    lost_[peer] = true;
    peers.push_back(static_cast<int>(peer));
  }
  return peers;
}

}  // namespace syncopate
