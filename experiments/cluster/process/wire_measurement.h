// Measures how fast two members of a run reach each other over a wire of this machine.
#pragma once

#include "allreduce/schedule/cost_model.h"
#include "common/transport/link_shape.h"
#include "common/transport/make_transport.h"
#include "experiments/config/run_settings.h"

namespace syncopate::experiments {

// Connects two threads of this process over the wire, tcp and sockets over the loopback, and measures as a run with
// --collective=auto does (allreduce/collective/link_measurement.h): both send at the same time. Takes some tenths of a
// second. Fails as the wire does, and with deadline exceeded after `limit`.
Result<allreduce::LinkModel> measure_wire(TransportKind transport, int connections, Duration limit);

// Returns the emulated link whose long messages take as long, and whose delay is what a message costs besides; to four
// digits, and within what a LinkShape may be. A link between hosts carries frames (common/transport/link_shape.h); what
// passes inside one has none.
LinkShape link_between_hosts(const allreduce::LinkModel& link);
LinkShape link_inside_a_host(const allreduce::LinkModel& link);

}  // namespace syncopate::experiments
