// SocketStream: the bytes of one connection, both ways, in order. Nothing here waits.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "common/file_descriptor.h"

namespace syncopate {

class SocketStream {
 public:
  virtual ~SocketStream() = default;

  // To be polled.
  virtual int descriptor() const = 0;

  // How many bytes of the parts, from the first one on, were taken: 0 if there is no room now. Nothing if the
  // connection takes no more ever.
  virtual std::optional<std::size_t> write(std::span<const iovec> parts) = 0;

  // How many bytes were put into the places, from the first one on: 0 if there are none now. Nothing if no more will
  // come.
  virtual std::optional<std::size_t> read(std::span<const iovec> places) = 0;
};

// Bytes as they are. The socket is connected and does not block.
std::unique_ptr<SocketStream> make_plain_stream(FileDescriptor socket);

}  // namespace syncopate
