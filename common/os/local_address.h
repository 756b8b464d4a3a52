// Finds the address by which another host knows this one.
#pragma once

#include <string>

#include "common/status.h"

namespace syncopate {

// Returns the source address of what this host sends to `host` (a name or an address): "10.0.0.7",
// or "fd00::7" if only IPv6 leads there. It is taken from the kernel's routing table; nothing is sent. Fails with not
// found if the name cannot be resolved or there is no route.
Result<std::string> local_address_towards(const std::string& host);

// Fails with invalid argument unless it is an address of this host.
Status check_own_address(const std::string& address);

// Returns the name of the interface that has this address: "eth0". Empty if none has.
std::string interface_of(const std::string& address);

}  // namespace syncopate
