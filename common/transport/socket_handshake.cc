#include "common/transport/socket_handshake.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace syncopate {

SocketHandshake::SocketHandshake(FileDescriptor socket, const Member& self, int peer)
    : socket_(std::move(socket)), self_(self), peer_(peer), connects_(peer >= 0) {}

SocketHandshake SocketHandshake::connecting(FileDescriptor socket, const Member& self, int peer) {
  SocketHandshake handshake(std::move(socket), self, peer);
  handshake.say_hello();
  return handshake;
}

SocketHandshake SocketHandshake::accepted(FileDescriptor socket, const Member& self) {
  return SocketHandshake(std::move(socket), self, -1);
}

SocketHandshake::State SocketHandshake::advance() {
  bool done = said() && heard(sizeof(Hello));
  if (done && !connects_ && peer_ < 0) {
    if (accept_hello()) say_hello();
    done = said();
  } else if (done && connects_) {
    failed_ = !accept_hello();
  }
  if (failed_) return State::kFailed;
  return done ? State::kDone : State::kUnderWay;
}

short SocketHandshake::events() const { return to_say_.empty() ? POLLIN : POLLOUT; }

void SocketHandshake::say_hello() {
  const Hello hello{
      .run = self_.run, .from = static_cast<std::uint32_t>(self_.rank), .to = static_cast<std::uint32_t>(peer_)};
  to_say_.append(reinterpret_cast<const char*>(&hello), sizeof(hello));
}

bool SocketHandshake::accept_hello() {
  Hello hello;
  std::memcpy(&hello, heard_.data(), sizeof(hello));
  const bool right = hello.magic == Hello::kMagic && hello.version == Hello::kVersion && hello.run == self_.run &&
                     hello.to == static_cast<std::uint32_t>(self_.rank) &&
                     hello.from < static_cast<std::uint32_t>(self_.size) &&
                     (connects_ ? hello.from == static_cast<std::uint32_t>(peer_) : hello.from > hello.to);
  if (right) peer_ = static_cast<int>(hello.from);
  failed_ = !right;
  return right;
}

bool SocketHandshake::said() {
  while (!failed_ && !to_say_.empty()) {
    const ssize_t bytes = send(socket_.get(), to_say_.data(), to_say_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (bytes > 0) to_say_.erase(0, static_cast<std::size_t>(bytes));
    if (bytes <= 0) {
      failed_ = errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR;
      return false;
    }
  }
  return !failed_;
}

// Takes no byte more than `bytes` in all: what follows is the stream's.
bool SocketHandshake::heard(std::size_t bytes) {
  while (!failed_ && heard_.size() < bytes) {
    char part[256];
    const ssize_t count = recv(socket_.get(), part, std::min(sizeof(part), bytes - heard_.size()), MSG_DONTWAIT);
    if (count > 0) heard_.append(part, static_cast<std::size_t>(count));
    if (count <= 0) {
      failed_ = count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
      return false;
    }
  }
  return !failed_;
}

}  // namespace syncopate
