// SocketHandshake: one end's part in beginning a connection. Who connects speaks first; who is connected to answers
// only a Hello that is right. Nothing here waits.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/file_descriptor.h"
#include "common/transport/socket_frame.h"
#include "common/transport/socket_stream.h"

namespace syncopate {

class SocketHandshake {
 public:
  struct Member {
    std::uint64_t run = 0;  // hash of run and group
    int rank = 0;
    int size = 1;
  };

  // Of who connects to `peer`. The socket may still be connecting; it does not block.
  static SocketHandshake connecting(FileDescriptor socket, const Member& self, int peer);
  // Of who was connected to, by a member of higher rank or by a stranger.
  static SocketHandshake accepted(FileDescriptor socket, const Member& self);

  enum class State { kUnderWay, kDone, kFailed };

  // Goes on as far as that can be without waiting.
  State advance();
  // What to poll for until advance() can do more.
  int descriptor() const { return socket_.get(); }
  short events() const;
  // Who the other end is; -1 while that is not known.
  int peer() const { return peer_; }
  // The connection, once done.
  std::unique_ptr<SocketStream> take_stream() { return make_plain_stream(std::move(socket_)); }

 private:
  SocketHandshake(FileDescriptor socket, const Member& self, int peer);

  void say_hello();
  bool accept_hello();
  // Each false as long as there is more to do; failed_ if there is no more to be done.
  bool said();
  bool heard(std::size_t bytes);

  FileDescriptor socket_;
  Member self_;
  int peer_;
  bool connects_;
  bool failed_ = false;
  std::string to_say_;
  std::string heard_;
};

}  // namespace syncopate
