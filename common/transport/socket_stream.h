// SocketStream: the bytes of one connection, both ways, in order. Nothing here waits.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "common/os/file_descriptor.h"
#include "common/transport/socket_cipher.h"

namespace syncopate {

class SocketStream {
 public:
  virtual ~SocketStream() = default;

  // To be polled.
  virtual int descriptor() const = 0;

  // How many bytes of the parts, from the first one on, were taken: 0 if there is no room now. Nothing if the
  // connection takes no more ever. What was taken is not read again.
  virtual std::optional<std::size_t> write(std::span<const iovec> parts) = 0;
  // Whether bytes that were taken are not the kernel's yet. Every write(), also of no parts, goes on with them first.
  virtual bool holds_bytes() const = 0;

  // How many bytes were put into the places, from the first one on: 0 if there are none now. Nothing if no more will
  // come.
  virtual std::optional<std::size_t> read(std::span<const iovec> places) = 0;
  // Whether read() gives bytes though polling the descriptor does not tell of any.
  virtual bool has_received() const = 0;
};

// Bytes as they are. The socket is connected and does not block.
std::unique_ptr<SocketStream> make_plain_stream(FileDescriptor socket);
// Bytes in records, each sealed by `out` and opened by `in`. Anything but the next record ends the stream for good:
// what is read are the first bytes of what was written, all of them or fewer.
std::unique_ptr<SocketStream> make_sealed_stream(FileDescriptor socket, const SocketCipher& out,
                                                 const SocketCipher& in);

}  // namespace syncopate
