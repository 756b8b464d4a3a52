// Checks a file of traces as a viewer depends on it: events in order of time, none on a track that overlaps another
// without lying within it, arrows that end, processes and tracks with names; and that it counts what it holds.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace syncopate::testing_support {

struct CheckedTrace {
  std::vector<std::string> faults;  // what is wrong; empty: nothing is
  // How many there are of each:
  std::map<std::string, int> slices;    // by category: "phase", "collective", "part", "push", "message"
  std::map<std::string, int> counters;  // by name
  int arrows = 0;                       // that begin and end
  int steps_of_arrows = 0;
  std::vector<std::string> processes;  // their names
};

CheckedTrace check_trace(const nlohmann::json& trace);

}  // namespace syncopate::testing_support
