// Finds a port for rank 0 of a program of the person's own (MASTER_PORT).
#pragma once

#include <string>

#include "common/status.h"

namespace syncopate::experiments {

// Returns a port at which this host can listen with this IPv4 address, drawn anew by each call. Nothing holds it until
// then: a program that finds it taken says so. Fails with resource exhausted if none is free.
Result<int> free_port(const std::string& address);

}  // namespace syncopate::experiments
