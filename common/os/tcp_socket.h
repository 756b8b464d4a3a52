// TCP sockets, none of which blocks. The message of a failure is the reason alone, as the kernel has it.
#pragma once

#include "common/clock.h"
#include "common/os/file_descriptor.h"
#include "common/os/socket_address.h"
#include "common/status.h"

namespace syncopate {

// Listens at `address`; at port 0 the kernel chooses one. Fails with resource exhausted if somebody listens there.
Result<FileDescriptor> listen_over_tcp(const SocketAddress& address);

// Begins to connect; whether that succeeds is known once the socket can be written to. Fails with peer lost if it is
// known at once that nobody listens there.
Result<FileDescriptor> begin_tcp_connection(const SocketAddress& address);

// From now on the connection ends once nothing has come through it for so long, not even what both kernels confirm to
// each other by themselves: the other host is cut off, or without power.
void lose_when_silent(int socket, Duration silence);

}  // namespace syncopate
