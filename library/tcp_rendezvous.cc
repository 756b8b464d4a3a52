#include "library/tcp_rendezvous.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "common/os/readiness.h"
#include "common/text/printable_text.h"
#include "library/rendezvous_server.h"
#include "library/socket_address.h"
#include "library/text_frame.h"

namespace syncopate::library {
namespace {

// Between two attempts to reach a server that is not there yet.
constexpr Duration kRetry = std::chrono::milliseconds(20);
// How long who gives up waits to be told who is missing.
constexpr Duration kLastWord = std::chrono::milliseconds(500);
constexpr int kNobody = -1;

}  // namespace

Result<std::unique_ptr<TcpRendezvous>> TcpRendezvous::make(const std::string& address, std::string prefix) {
  SYNCOPATE_RETURN_IF_ERROR(resolve(address).status());
  FileDescriptor wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.open()) return Status::resource_exhausted(fmt::format("eventfd: {}", std::strerror(errno)));
  return std::unique_ptr<TcpRendezvous>(new TcpRendezvous(address, std::move(prefix), std::move(wake)));
}

void TcpRendezvous::interrupt() { eventfd_write(wake_.get(), 1); }

Result<std::vector<std::string>> TcpRendezvous::exchange(const std::string& group, int rank, int size,
                                                         const std::string& value, TimePoint deadline) {
  const std::string request = frame_of({prefix_ + group, std::to_string(rank), std::to_string(size), value});
  if (request.size() > kLongestRequest || size > kMostMembers) {
    return Status::invalid_argument(fmt::format("{} members, a value of {} bytes: at most {} and {}", size,
                                                value.size(), kMostMembers, kLongestRequest));
  }
  while (true) {
    SYNCOPATE_ASSIGN_OR_RETURN(const FileDescriptor socket, connect(deadline));
    Status sent = send(socket.get(), request, deadline);
    Result<std::vector<std::string>> answer =
        sent.ok() ? receive(socket.get(), deadline) : Result<std::vector<std::string>>(std::move(sent));
    if (answer.status().code() == Code::kPeerLost && !has_met_) {
      if (const Status waited = wait(kNobody, 0, std::min(deadline, clock_.now() + kRetry));
          waited.code() == Code::kCancelled) {
        return waited;
      }
      if (clock_.now() < deadline) continue;
    }
    if (!answer.ok()) return answer.status();
    const std::string verdict = answer->empty() ? "" : answer->front();
    answer->erase(answer->begin(), answer->begin() + (answer->empty() ? 0 : 1));
    if (verdict == "ok" && answer->size() == static_cast<std::size_t>(size)) {
      has_met_ = true;
      return answer;
    }
    if (answer->size() == 1 && verdict == "missing") {
      return Status::deadline_exceeded(fmt::format("no word from rank {}", printable(answer->front())));
    }
    if (answer->size() == 1 && verdict == "refused") return Status::invalid_argument(printable(answer->front()));
    return Status::data_loss(fmt::format("rank 0 at {} does not answer as this version does", address_));
  }
}

Result<FileDescriptor> TcpRendezvous::connect(TimePoint deadline) const {
  SYNCOPATE_ASSIGN_OR_RETURN(const SocketAddress address, resolve(address_));
  int error = ETIMEDOUT;
  do {
    FileDescriptor socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.open()) return Status::resource_exhausted(fmt::format("opening a socket: {}", std::strerror(errno)));
    error = ::connect(socket.get(), address.get(), address.size()) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
      SYNCOPATE_RETURN_IF_ERROR(wait(socket.get(), POLLOUT, deadline));
      socklen_t length = sizeof(error);
      getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    }
    // A port that nobody listens at may be the caller's own: it would talk to itself.
    if (error == 0 && SocketAddress::of_socket(socket.get()).to_string() != address.to_string()) return socket;
    if (has_met_) return Status::peer_lost("rank 0 is gone");
    if (const Status waited = wait(kNobody, 0, std::min(deadline, clock_.now() + kRetry));
        waited.code() == Code::kCancelled) {
      return waited;
    }
  } while (clock_.now() < deadline);
  return Status::deadline_exceeded(fmt::format(
      "rank 0 does not listen at {} ({}): is it started, with the same address?", address_, std::strerror(error)));
}

Status TcpRendezvous::send(int socket, const std::string& bytes, TimePoint deadline) const {
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t count = ::send(socket, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (count > 0) {
      at += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN || errno == EINTR) {
      SYNCOPATE_RETURN_IF_ERROR(wait(socket, POLLOUT, deadline));
    } else {
      return Status::peer_lost("rank 0 is gone");
    }
  }
  return Status();
}

Result<std::vector<std::string>> TcpRendezvous::receive(int socket, TimePoint deadline) const {
  std::string bytes;
  std::array<char, 16384> part{};
  bool gives_up = false;
  while (true) {
    if (Status waited = wait(socket, POLLIN, deadline); !waited.ok()) {
      if (gives_up || waited.code() != Code::kDeadlineExceeded) return waited;
      gives_up = true;
      shutdown(socket, SHUT_WR);
      deadline = clock_.now() + kLastWord;
      continue;
    }
    const ssize_t count = recv(socket, part.data(), part.size(), 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (count <= 0) return Status::peer_lost("rank 0 is gone");
    bytes.append(part.data(), static_cast<std::size_t>(count));
    SYNCOPATE_ASSIGN_OR_RETURN(std::optional<std::vector<std::string>> texts, read_frame(bytes, kLongestAnswer));
    if (texts) return std::move(*texts);
  }
}

Status TcpRendezvous::wait(int socket, short events, TimePoint deadline) const {
  pollfd items[] = {{wake_.get(), POLLIN, 0}, {socket, events, 0}};
  if (!ready_before(deadline, items)) {
    return Status::deadline_exceeded(fmt::format("rank 0 at {} does not answer", address_));
  }
  return items[0].revents != 0 ? Status::cancelled("interrupted") : Status();
}

}  // namespace syncopate::library
