#include "experiments/lab/board/http_server.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <span>
#include <utility>
#include <vector>

#include "common/os/readiness.h"
#include "common/os/socket_address.h"
#include "common/os/tcp_socket.h"

namespace syncopate::experiments {
namespace {

// Where no descriptor is left for a connection, nobody is let in for so long.
constexpr Duration kPauseWithoutDescriptors = std::chrono::milliseconds(200);

// One connection: receives until there is an answer, sends it, and waits until the other side has read it.
class HttpConnection {
 public:
  HttpConnection(FileDescriptor socket, TimePoint deadline) : socket_(std::move(socket)), deadline_(deadline) {}

  TimePoint deadline() const { return deadline_; }
  pollfd wish() const {
    return {.fd = socket_.get(), .events = static_cast<short>(answer_.empty() ? POLLIN : POLLOUT), .revents = 0};
  }

  // Goes on as far as is possible without waiting. Returns false once the connection is to be closed.
  bool proceed(const HttpPage& page) {
    if (answer_.empty() && !receive(page)) return false;
    return answer_.empty() || send();
  }

 private:
  bool receive(const HttpPage& page) {
    constexpr int kReadsATurn = 8;  // so that nobody who sends without end keeps the others waiting
    std::array<char, 2048> bytes;
    for (int reads = 0; reads < kReadsATurn; ++reads) {
      const ssize_t count = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
      if (count < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
      if (count == 0) return false;  // nobody is there to hear an answer, or it has been read
      if (is_done_) continue;        // what comes behind the request is dropped
      received_.append(bytes.data(), static_cast<std::size_t>(count));
      if (std::optional<std::string> answer = http_answer(received_, page)) {
        answer_ = std::move(*answer);
        received_.clear();
        return true;
      }
    }
    return true;
  }

  bool send() {
    while (sent_ < answer_.size()) {
      const ssize_t count = ::send(socket_.get(), answer_.data() + sent_, answer_.size() - sent_, MSG_NOSIGNAL);
      if (count < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
      sent_ += static_cast<std::size_t>(count);
    }
    answer_.clear();
    // A socket that is closed before all was read resets the connection, and the answer may be lost: so the other side
    // closes first.
    is_done_ = true;
    return ::shutdown(socket_.get(), SHUT_WR) == 0;
  }

  FileDescriptor socket_;
  TimePoint deadline_;
  std::string received_, answer_;
  std::size_t sent_ = 0;  // of the answer
  bool is_done_ = false;  // the answer is sent
};

class Loop {
 public:
  Loop(FileDescriptor listener, int stop, HttpPage page, Duration deadline)
      : listener_(std::move(listener)), stop_(stop), page_(std::move(page)), patience_(deadline) {}

  // Returns when `stop` can be read.
  void run() {
    while (true) {
      std::vector<pollfd> wishes{{.fd = stop_, .events = POLLIN, .revents = 0}};
      const TimePoint now = clock_.now();
      const bool lets_in = now >= shut_until_;
      if (lets_in) wishes.push_back({.fd = listener_.get(), .events = POLLIN, .revents = 0});
      const std::size_t first = wishes.size();
      for (const HttpConnection& connection : connections_) wishes.push_back(connection.wish());
      ready_before(next_deadline(now), wishes);
      if (wishes[0].revents != 0) return;
      go_on(std::span(wishes).subspan(first));
      if (lets_in && wishes[1].revents != 0) let_in();
    }
  }

 private:
  TimePoint next_deadline(TimePoint now) const {
    TimePoint next = shut_until_ > now ? shut_until_ : kNoDeadline;
    for (const HttpConnection& connection : connections_) next = std::min(next, connection.deadline());
    return next;
  }

  void go_on(std::span<const pollfd> wishes) {
    const TimePoint now = clock_.now();
    std::size_t kept = 0;
    for (std::size_t i = 0; i < wishes.size(); ++i) {
      HttpConnection& connection = connections_[i];
      if (now >= connection.deadline()) continue;
      if (wishes[i].revents != 0 && !connection.proceed(page_)) continue;
      if (kept != i) connections_[kept] = std::move(connection);
      ++kept;
    }
    connections_.erase(connections_.begin() + static_cast<std::ptrdiff_t>(kept), connections_.end());
  }

  void let_in() {
    for (std::size_t i = 0; i < HttpServer::kMostConnections; ++i) {
      FileDescriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket.open()) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
          shut_until_ = clock_.now() + kPauseWithoutDescriptors;
        }
        return;
      }
      if (connections_.size() == HttpServer::kMostConnections) connections_.erase(connections_.begin());
      connections_.emplace_back(std::move(socket), clock_.now() + patience_);
    }
  }

  const FileDescriptor listener_;
  const int stop_;
  const HttpPage page_;
  const Duration patience_;
  const SteadyClock clock_{};
  TimePoint shut_until_{};
  std::vector<HttpConnection> connections_;  // the oldest first
};

Status cannot_listen(int port, const std::string& why) {
  return Status::invalid_argument(
      fmt::format("127.0.0.1:{} cannot be listened on: {}; 0 takes a port that is free", port, why));
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::start(int port, HttpPage page, Duration deadline) {
  SYNCOPATE_ASSIGN_OR_RETURN(const SocketAddress address,
                             SocketAddress::of_host("127.0.0.1", static_cast<std::uint16_t>(port)));
  Result<FileDescriptor> listener = listen_over_tcp(address);
  if (!listener.ok()) return cannot_listen(port, listener.status().message());
  FileDescriptor stop(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop.open()) return cannot_listen(port, std::strerror(errno));
  const int bound = SocketAddress::of_socket(listener->get()).port();
  return std::unique_ptr<HttpServer>(
      new HttpServer(std::move(*listener), std::move(stop), bound, std::move(page), deadline));
}

HttpServer::HttpServer(FileDescriptor listener, FileDescriptor stop, int port, HttpPage page, Duration deadline)
    : stop_(std::move(stop)), port_(port) {
  auto loop = std::make_shared<Loop>(std::move(listener), stop_.get(), std::move(page), deadline);
  thread_ = os_threads().start("metrics", [loop] {
    try {
      loop->run();
    } catch (const std::exception&) {
      // Without memory nothing is served any more, and the run goes on.
    }
  });
}

HttpServer::~HttpServer() { (void)!::eventfd_write(stop_.get(), 1); }

}  // namespace syncopate::experiments
