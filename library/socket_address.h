// The address at which ranks meet.
#pragma once

#include <string>

#include "common/os/socket_address.h"
#include "common/status.h"

namespace syncopate::library {

// Reads "HOST:PORT", where HOST may be a name, or an address of IPv6 with or without brackets; of a name's addresses it
// is the first that others can use, of IPv4 if there is one. Fails with invalid argument, and with not found for a name
// that nobody knows.
Result<SocketAddress> resolve(const std::string& text);

}  // namespace syncopate::library
