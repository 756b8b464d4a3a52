#include "tests/support/rejection_lines.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <charconv>
#include <cstddef>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "common/clock.h"

namespace syncopate::testing_support {
namespace {

using experiments::control::ToCoordinator;

FileDescriptor connected(int family, int type, const sockaddr* address, socklen_t length) {
  FileDescriptor connection(socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!connection.open()) return connection;
  const bool is_under_way = connect(connection.get(), address, length) == 0 || errno == EINPROGRESS;
  return is_under_way ? std::move(connection) : FileDescriptor();
}

}  // namespace

ForgedLine::ForgedLine(zmq::context_t& context, const std::string& address, const std::string& identity)
    : socket_(context, zmq::socket_type::dealer) {
  socket_.set(zmq::sockopt::routing_id, identity);
  socket_.set(zmq::sockopt::linger, 0);
  socket_.set(zmq::sockopt::sndtimeo, 20);
  socket_.connect(address);
}

void ForgedLine::hello(const std::string& run, std::int64_t pid) {
  ToCoordinator message;
  message.mutable_hello()->set_run_id(run);
  message.mutable_hello()->set_pid(pid);
  message.mutable_hello()->set_host("here");
  say(message);
}

void ForgedLine::say(const ToCoordinator& message, std::size_t weights) {
  const std::string head = message.SerializeAsString();
  if (weights == 0) {
    (void)socket_.send(zmq::buffer(head), zmq::send_flags::none);
    return;
  }
  const std::vector<float> zeros(weights);
  if (!socket_.send(zmq::buffer(head), zmq::send_flags::sndmore)) return;
  (void)socket_.send(zmq::buffer(zeros), zmq::send_flags::none);
}

void ForgedLine::listen(std::chrono::milliseconds patience) {
  socket_.set(zmq::sockopt::rcvtimeo, static_cast<int>(patience.count()));
  zmq::message_t frame;
  while (socket_.recv(frame)) {
    ++messages_;
    while (frame.more() && socket_.recv(frame)) floats_ += static_cast<std::int64_t>(frame.size() / sizeof(float));
  }
}

FileDescriptor raw_connection(const std::string& place) {
  if (place.starts_with("tcp://")) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    const std::size_t colon = place.rfind(':');
    unsigned port = 0;
    std::from_chars(place.data() + colon + 1, place.data() + place.size(), port);
    to.sin_port = htons(static_cast<in_port_t>(port));
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    return connected(AF_INET, SOCK_STREAM, reinterpret_cast<const sockaddr*>(&to), sizeof(to));
  }
  const std::string name = place.substr(place.find('@') + 1);
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof(to.sun_path) - 1);
  std::memcpy(to.sun_path + 1, name.data(), length);
  return connected(AF_UNIX, place.starts_with("seqpacket") ? SOCK_SEQPACKET : SOCK_STREAM,
                   reinterpret_cast<const sockaddr*>(&to),
                   static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length));
}

void send_with_files(const FileDescriptor& connection, std::string_view bytes, std::span<const int> files) {
  std::vector<char> control(CMSG_SPACE(files.size_bytes()));
  iovec data{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (!files.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr& header = *CMSG_FIRSTHDR(&message);
    header.cmsg_level = SOL_SOCKET;
    header.cmsg_type = SCM_RIGHTS;
    header.cmsg_len = CMSG_LEN(files.size_bytes());
    std::memcpy(CMSG_DATA(&header), files.data(), files.size_bytes());
  }
  (void)sendmsg(connection.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

VisibleRun await_run(pid_t coordinator) {
  const TimePoint deadline = SteadyClock().now() + std::chrono::seconds(30);
  while (SteadyClock().now() < deadline && is_alive(coordinator)) {
    if (std::optional<VisibleRun> run = visible_run(coordinator)) return *run;
    poll(nullptr, 0, 2);
  }
  throw std::runtime_error("no process of the run is to be seen");
}

int until_the_end(pid_t coordinator, int most, const std::function<void(int attempt)>& attempt) {
  int attempts = 0;
  for (; attempts < most && is_alive(coordinator); ++attempts) attempt(attempts);
  return attempts;
}

}  // namespace syncopate::testing_support
