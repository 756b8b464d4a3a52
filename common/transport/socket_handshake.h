// SocketHandshake: one end's part in beginning a connection. Who connects speaks first; who is connected to answers
// only a Hello that is right. Each end then proves that it has the run's keys: with fresh keys in the Hellos, the keys
// of the connection follow from all that was said (EphemeralPair), and the first record of each end must open. What
// follows is sealed, or plain where the connection stays on one host. Nothing here waits.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "common/os/file_descriptor.h"
#include "common/transport/run_keys.h"
#include "common/transport/socket_cipher.h"
#include "common/transport/socket_frame.h"
#include "common/transport/socket_stream.h"

namespace syncopate {

class SocketHandshake {
 public:
  struct Member {
    std::uint64_t run = 0;  // hash of run and group
    int rank = 0;
    int size = 1;
    RunKeys keys;
    bool encrypted = false;
  };

  // Of who connects to `peer`. The socket may still be connecting; it does not block. `self` outlives the handshake.
  static SocketHandshake connecting(FileDescriptor socket, const Member& self, int peer);
  // Of who was connected to, by a member of higher rank or by a stranger.
  static SocketHandshake accepted(FileDescriptor socket, const Member& self);

  enum class State { kUnderWay, kDone, kFailed };

  // Goes on as far as that can be without waiting.
  State advance();
  // What to poll for until advance() can do more.
  int descriptor() const { return socket_.get(); }
  short events() const;
  // Whether the other end began it.
  bool was_accepted() const { return !connects_; }
  // Who the other end is; -1 while that is not known.
  int peer() const { return peer_; }
  // The connection, once done.
  std::unique_ptr<SocketStream> take_stream();

 private:
  SocketHandshake(FileDescriptor socket, const Member& self, int peer);

  // Each of these ends the handshake where that cannot be done.
  void say_hello();
  void accept_hello();
  void agree(const Hello& others);
  void say_proof();
  void accept_proof();
  // Whether all is said, and whether so many bytes have been heard; as far as that can be without waiting.
  bool said();
  bool heard(std::size_t bytes);

  FileDescriptor socket_;
  const Member* self_;
  int peer_;
  const bool connects_;
  bool failed_ = false;
  bool is_greeted_ = false;
  bool is_proven_ = false;
  std::string own_hello_;
  std::string to_say_;
  std::string heard_;
  EphemeralPair pair_;
  // Once greeted.
  std::optional<SocketCipher> out_;
  std::optional<SocketCipher> in_;
};

}  // namespace syncopate
