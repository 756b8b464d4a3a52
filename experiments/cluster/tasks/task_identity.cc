#include "experiments/cluster/tasks/task_identity.h"

#include <sodium.h>

#include <utility>

#include "common/hash.h"
#include "common/launch/rank_variables.h"
#include "common/os/readiness.h"
#include "common/transport/run_keys.h"
#include "common/transport/secret_file.h"

namespace syncopate::experiments {

Result<SocketHandshake::Member> task_identity(const std::string& secret_file, const std::string& job, int rank,
                                              int size) {
  if (sodium_init() < 0) return Status::internal("libsodium cannot be used on this machine");
  const std::string name = "tasks of " + job;
  const Result<SecretText> secret = read_secret_file(secret_file);
  if (!secret.ok()) return secret.status().in(kSecretFile);
  SYNCOPATE_ASSIGN_OR_RETURN(RunKeys keys, RunKeys::of_job(*secret, name));
  return SocketHandshake::Member{
      .run = hash_of(name), .rank = rank, .size = size + 1, .keys = std::move(keys), .encrypted = true};
}

Result<TaskConnection> shake_hands(SocketHandshake handshake, TimePoint deadline) {
  while (true) {
    const SocketHandshake::State state = handshake.advance();
    if (state == SocketHandshake::State::kDone) return TaskConnection(handshake.take_stream());
    if (state == SocketHandshake::State::kFailed) {
      return Status::peer_lost("nobody with the secret of these tasks answers there");
    }
    if (!ready_before(deadline, handshake.descriptor(), handshake.events())) {
      return Status::deadline_exceeded("nobody answers there");
    }
  }
}

}  // namespace syncopate::experiments
