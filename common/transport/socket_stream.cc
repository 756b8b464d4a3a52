#include "common/transport/socket_stream.h"

#include <sys/socket.h>

#include <cerrno>

namespace syncopate {
namespace {

class PlainStream final : public SocketStream {
 public:
  explicit PlainStream(FileDescriptor socket) : socket_(std::move(socket)) {}

  int descriptor() const override { return socket_.get(); }

  std::optional<std::size_t> write(std::span<const iovec> parts) override {
    const msghdr message{.msg_iov = const_cast<iovec*>(parts.data()), .msg_iovlen = parts.size()};
    return outcome(sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT));
  }
  bool holds_bytes() const override { return false; }

  std::optional<std::size_t> read(std::span<const iovec> places) override {
    const ssize_t bytes = readv(socket_.get(), places.data(), static_cast<int>(places.size()));
    if (bytes == 0) return std::nullopt;
    return outcome(bytes);
  }
  bool has_received() const override { return false; }

 private:
  static std::optional<std::size_t> outcome(ssize_t bytes) {
    if (bytes >= 0) return static_cast<std::size_t>(bytes);
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return 0;
    return std::nullopt;
  }

  const FileDescriptor socket_;
};

}  // namespace

std::unique_ptr<SocketStream> make_plain_stream(FileDescriptor socket) {
  return std::make_unique<PlainStream>(std::move(socket));
}

}  // namespace syncopate
