// What stands behind the objects of syncopate/syncopate.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "library/communicator.h"
#include "library/group.h"
#include "library/rendezvous_server.h"
#include "library/syncopate/syncopate.h"
#include "library/tcp_rendezvous.h"

namespace syncopate::api {

// The ranks, and what they have met through. Shared by all that stands on them.
struct Meeting {
  std::unique_ptr<library::RendezvousServer> server;  // rank 0's
  std::unique_ptr<library::TcpRendezvous> rendezvous;
  std::shared_ptr<library::Group> group;
};

// Shares both.
inline std::shared_ptr<library::Group> group_of(const std::shared_ptr<Meeting>& meeting) {
  return {meeting, meeting->group.get()};
}

struct Collective::Impl {
  std::unique_ptr<library::Communicator> communicator;

  Status finish(std::uint64_t ticket, const char* operation);
};

struct Job::Impl {
  std::shared_ptr<Meeting> meeting;
  Collective collective;
  int strategies = 0;  // so far
};

// What a failure is to a caller: `operation` is what was done, in `step` (-1: in none), and `missed` the rank that was
// waited for, -1 if unknown.
Status status_of(const ::syncopate::Status& status, const library::Group& group, const std::string& operation,
                 std::int64_t step = -1, int missed = -1);
// The same where there is no group yet.
Status status_of(const ::syncopate::Status& status, const std::string& operation);

// Returns `layout` as the engine has it. Fails with invalid argument, naming a tensor.
::syncopate::Result<::syncopate::ParamLayout> engine_layout(const ParamLayout& layout);

}  // namespace syncopate::api
