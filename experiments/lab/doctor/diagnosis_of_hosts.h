// What is wrong with hosts that were examined, and what mends it. Pure.
#pragma once

#include <string>
#include <vector>

#include "experiments/cluster/doctor/examination.h"

namespace syncopate::experiments {

struct Finding {
  std::string where;   // "host node2", "node1 and node2"
  std::string what;    // what is wrong, with the value
  std::string remedy;  // what would be right
};

// `fingerprint` is that of this program's sources.
std::vector<Finding> findings_of(const Examination& examination, const std::string& fingerprint);

}  // namespace syncopate::experiments
