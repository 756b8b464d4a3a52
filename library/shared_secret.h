// The secret of a job, given from one process to the others of its user on its host. A rendezvous shows what it is
// given to whoever can reach it, so that no key may pass through it; a local socket tells, by the kernel's word, which
// user is at the other end.
#pragma once

#include <string>

#include "common/clock.h"
#include "common/os/file_descriptor.h"
#include "common/status.h"
#include "common/transport/run_keys.h"

namespace syncopate::library {

// Gives `keys` to ranks 1 .. size-1, each of which connects once to `listener` (listen_locally). Fails with deadline
// exceeded, naming who has not come.
Status give_keys(const RunKeys& keys, FileDescriptor listener, int size, TimePoint deadline);

// Takes them from who listens at `name`. Fails with peer lost if that is another user, or gone.
Result<RunKeys> take_keys(const std::string& name, int rank, TimePoint deadline);

}  // namespace syncopate::library
