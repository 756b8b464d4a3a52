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

  // The descriptor to poll.
  virtual int descriptor() const = 0;

  // Returns how many bytes of the parts, from the first one on, were accepted: 0 if there is no room now; nothing if
  // the connection accepts no more ever. Accepted bytes are not read again.
  virtual std::optional<std::size_t> write(std::span<const iovec> parts) = 0;
  // Whether accepted bytes have not reached the kernel yet. Every write(), even one without parts, sends them first.
  virtual bool holds_bytes() const = 0;

  // Returns how many bytes were put into the places, from the first one on: 0 if there are none now; nothing if no more
  // will arrive.
  virtual std::optional<std::size_t> read(std::span<const iovec> places) = 0;
  // Whether read() has bytes although polling the descriptor shows none.
  virtual bool has_received() const = 0;
};

// A stream of plain bytes. The socket must be connected and non-blocking.
std::unique_ptr<SocketStream> make_plain_stream(FileDescriptor socket);
// A stream of records, each sealed by `out` and opened by `in`. Anything but the next record ends the stream for good:
// the bytes read are a prefix of the bytes written, or all of them.
std::unique_ptr<SocketStream> make_sealed_stream(FileDescriptor socket, const SocketCipher& out,
                                                 const SocketCipher& in);

}  // namespace syncopate
