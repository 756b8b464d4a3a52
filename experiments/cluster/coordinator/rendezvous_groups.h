// RendezvousGroups: what processes have published for each other, by group, until all members of a group are there.
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "experiments/cluster/control/control.pb.h"

namespace syncopate::experiments {

class RendezvousGroups {
 public:
  struct Answer {
    control::Members members;
    // the processes to send it to; one with several members in the group appears several times
    std::vector<std::size_t> askers;
  };

  // `process` has published a value. Returns the answer once the group is complete. A member that publishes later, or
  // again, is then the only asker. An impossible rank is ignored.
  std::optional<Answer> publish(std::size_t process, const control::Publish& publish);

  // Forgets what was published for an earlier membership epoch: processes that are still there publish again. Names of
  // groups end with the number of their membership epoch, as in "data@3".
  void begin_membership(std::int64_t number);

 private:
  struct Group {
    std::map<int, std::string> members;  // by rank
    std::vector<std::size_t> askers;     // not answered yet
  };

  std::map<std::string, Group> groups_;  // by name
};

}  // namespace syncopate::experiments
