// Addresses of TCP sockets, IPv4.
#pragma once

#include <netinet/in.h>

#include <string>

#include "common/status.h"

namespace syncopate::library {

// Reads "HOST:PORT", where HOST may be a name. Fails with invalid argument, and with not found for a name that nobody
// knows.
Result<sockaddr_in> resolve(const std::string& text);

// "10.0.0.7"
std::string host_text_of(const sockaddr_in& address);
// "10.0.0.7:4711"
std::string text_of(const sockaddr_in& address);

}  // namespace syncopate::library
