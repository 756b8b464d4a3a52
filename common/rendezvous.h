// Rendezvous: how the members of a group find each other before they have a transport.
#pragma once

#include <string>
#include <vector>

#include "common/clock.h"
#include "common/status.h"

namespace syncopate {

class Rendezvous {
 public:
  virtual ~Rendezvous() = default;

  // Publishes `value` for member `rank` of `group`, waits until all `size` members have published theirs, and returns
  // them by rank. Call it once per group and member. Fails with deadline exceeded (naming who is missing) or cancelled.
  virtual Result<std::vector<std::string>> exchange(const std::string& group, int rank, int size,
                                                    const std::string& value, TimePoint deadline) = 0;

  // Whether some of the members will never arrive, so that a member that still waits for them should give up. Any
  // thread.
  virtual bool is_off() const { return false; }
};

}  // namespace syncopate
