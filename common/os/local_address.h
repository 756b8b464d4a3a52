// Which of this host's addresses another host knows it by. IPv4.
#pragma once

#include <string>

#include "common/status.h"

namespace syncopate {

// The address that what this host sends to `host` (a name or an address) comes from: "10.0.0.7". It is what the
// kernel's routing table says; nothing is sent. Not found where the name cannot be resolved or there is no route.
Result<std::string> local_address_towards(const std::string& host);

// Invalid argument unless it is an address of this host.
Status check_own_address(const std::string& address);

// The name of the interface that has this address: "eth0". Empty where none has.
std::string interface_of(const std::string& address);

}  // namespace syncopate
