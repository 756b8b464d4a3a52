// Unix sockets in the abstract namespace: they leave no file behind. A random name can be taken by nobody beforehand;
// but every user of the host can connect there, so that both ends look who is at the other.
#pragma once

#include <functional>
#include <string>

#include "common/os/file_descriptor.h"
#include "common/status.h"

namespace syncopate {

// "syncopate-" and 128 random bits: as long whatever the run is called. Without the zero byte that such names begin
// with.
std::string new_local_name();

// Listens for messages (SOCK_SEQPACKET), and does not block. Data loss if that cannot be a name.
Result<FileDescriptor> listen_locally(const std::string& name);

// Connects there; waits only while too many others do, and asks `check` from time to time whether it may. The other end
// is this user's: fails with peer lost if it is not, or if nobody listens, and with what `check` says.
Result<FileDescriptor> connect_locally(const std::string& name, const std::function<Status()>& check);

// The kernel's word for who is at the other end: such names have no permissions.
bool is_of_own_user(int connection);

// What errno says of doing `what` with a local socket: peer lost if the other end has gone.
Status local_socket_failure(const char* what);

}  // namespace syncopate
