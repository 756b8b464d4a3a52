// A ControlLine over ZeroMQ, to a coordinator on this host or another, from a process of the operating system.
#pragma once

#include <string>

#include "experiments/cluster/control/control_identity.h"
#include "experiments/cluster/control/control_line.h"

namespace syncopate::experiments {

// Connects `self` to the coordinator of the run with these keys, at `address`. The line throws zmq::error_t when it is
// made if that cannot be an address.
LineMaker zmq_control_line(const std::string& address, const RunKeys& keys, const ProcessIdentity& self);

}  // namespace syncopate::experiments
