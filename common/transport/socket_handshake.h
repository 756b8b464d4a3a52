// SocketHandshake: one end's part in beginning a connection. The connecting end sends first; the other end answers only
// a valid Hello. Each end then proves that it has the run's keys: the keys of the connection follow from all that was
// sent, with fresh keys in the Hellos (EphemeralPair), and the first record of each end must open. What follows is
// sealed, or plain if the connection stays on one host. Nothing here waits.
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

  // Begins the handshake of an end that connects to `peer`. The socket may still be connecting; it must not block.
  // `self` must outlive the handshake.
  static SocketHandshake connecting(FileDescriptor socket, const Member& self, int peer);
  // Begins the handshake of an end that has accepted a connection, from a member of higher rank or from an intruder.
  static SocketHandshake accepted(FileDescriptor socket, const Member& self);

  enum class State { kUnderWay, kDone, kFailed };

  // Goes on as far as possible without waiting.
  State advance();
  // What to poll for until advance() can do more.
  int descriptor() const { return socket_.get(); }
  short events() const;
  // Whether the other end began the connection.
  bool was_accepted() const { return !connects_; }
  // The rank of the other end; -1 as long as it is unknown.
  int peer() const { return peer_; }
  // Returns the connection, once done.
  std::unique_ptr<SocketStream> take_stream();

 private:
  SocketHandshake(FileDescriptor socket, const Member& self, int peer);

  // Each of these fails the handshake if it cannot be done.
  void say_hello();
  void accept_hello();
  void agree(const Hello& others);
  void say_proof();
  void accept_proof();
  // Whether everything was sent, and whether `bytes` bytes have been received; as far as possible without waiting.
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
  // Set once the Hellos have been exchanged.
  std::optional<SocketCipher> out_;
  std::optional<SocketCipher> in_;
};

}  // namespace syncopate
