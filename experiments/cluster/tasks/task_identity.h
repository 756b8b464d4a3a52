// What a task on one of several hosts, and whoever speaks with it, prove to each other in a handshake: that they have
// the secret of the job's tasks, which lies in a file of the person's own on each host.
#pragma once

#include <string>

#include "common/clock.h"
#include "common/status.h"
#include "common/transport/socket_handshake.h"
#include "experiments/cluster/tasks/task_connection.h"

namespace syncopate::experiments {

// Whose handshakes begin with task `rank` of `job`, which has `size` tasks; a shell, which is none, has rank `size`.
// Fails as read_secret_file() does, and with internal if there is no encryption.
Result<SocketHandshake::Member> task_identity(const std::string& secret_file, const std::string& job, int rank,
                                              int size);

// Carries a handshake out. Fails with peer lost if the other end has ended the connection or lacks the secret, and with
// deadline exceeded.
Result<TaskConnection> shake_hands(SocketHandshake handshake, TimePoint deadline);

}  // namespace syncopate::experiments
