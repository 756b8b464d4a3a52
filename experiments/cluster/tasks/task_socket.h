// TCP sockets of tasks on several hosts. None blocks.
#pragma once

#include "common/clock.h"
#include "common/os/file_descriptor.h"
#include "common/os/socket_address.h"
#include "common/status.h"

namespace syncopate::experiments {

// Listens at `address`; at port 0 the kernel chooses one. Fails with resource exhausted if somebody listens there.
Result<FileDescriptor> listen_at(const SocketAddress& address);

// Begins to connect; a handshake finds out whether that succeeds. Fails with peer lost if it is known at once that
// nobody listens there.
Result<FileDescriptor> begin_connection(const SocketAddress& address);

// From now on the connection ends once nothing has come through it for so long, not even what both kernels confirm to
// each other by themselves: the other host is cut off, or without power.
void lose_when_silent(int socket, Duration silence);

}  // namespace syncopate::experiments
