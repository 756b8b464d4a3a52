// RendezvousGroups: what processes have published for each other, by group, until all of a group are there. Pure.
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
    std::vector<std::size_t> askers;  // who is to have it: a process with several members in the group, several times
  };

  // `process` has published a value. The answer once the group is complete; a member that comes later, and again, gets
  // it alone. A rank that cannot be is left out.
  std::optional<Answer> publish(std::size_t process, const control::Publish& publish);

  // What was published for a generation before is forgotten: who is still there publishes again. Groups of a generation
  // have its number at the end of their names, as in "data@3".
  void begin_generation(std::int64_t number);

 private:
  struct Group {
    std::map<int, std::string> members;  // by rank
    std::vector<std::size_t> askers;     // not answered yet
  };

  std::map<std::string, Group> groups_;  // by name
};

}  // namespace syncopate::experiments
