// Unix sockets in the abstract namespace, which leave no file behind. Nobody can take a random name beforehand; but
// every user of the host can connect to it, so both ends check which user is at the other.
#pragma once

#include <functional>
#include <string>

#include "common/os/file_descriptor.h"
#include "common/status.h"

namespace syncopate {

// Returns "syncopate-" and 128 random bits, so the length does not depend on the name of the run. It lacks the zero
// byte with which such names begin.
std::string new_local_name();

// Listens for messages (SOCK_SEQPACKET), without blocking. Fails with data loss if `name` cannot be a name.
Result<FileDescriptor> listen_locally(const std::string& name);

// Connects to `name`. Waits only while too many others connect, and calls `check` from time to time to learn whether to
// go on. Fails with peer lost if the other end is not of this user or if nobody listens, and with the failure of
// `check`.
Result<FileDescriptor> connect_locally(const std::string& name, const std::function<Status()>& check);

// Returns who listens at `name`, by the kernel's word: "user nobody (uid 65534), pid 4711". For people.
std::string holder_of_local_name(const std::string& name);

// Returns whether the other end is of this user, according to the kernel: such names have no permissions.
bool is_of_own_user(int connection);

// Converts errno to a Status for `what` with a local socket: peer lost if the other end has closed it.
Status local_socket_failure(const char* what);

}  // namespace syncopate
