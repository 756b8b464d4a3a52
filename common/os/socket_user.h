// Which user has a TCP socket of this host, by the kernel's word (/proc/net/tcp).
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "common/os/socket_address.h"

namespace syncopate {

// Returns who listens at this address and port, or at this port of all addresses; nothing if nobody does, or the kernel
// does not tell.
std::optional<uid_t> user_who_listens_at(const SocketAddress& address);

// Returns who is at the other end of a connection within this host; nothing if that end is on another one, or the
// kernel does not tell.
std::optional<uid_t> user_at_other_end(int connection);

// "user nobody (uid 65534)", "this user (uid 1000)".
std::string describe_user(uid_t user);

}  // namespace syncopate
