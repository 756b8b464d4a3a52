// The secret of the groups that tests and benchmarks make, in all of their processes.
#pragma once

#include <string>

#include "common/transport/run_keys.h"

namespace syncopate::testing_support {

inline RunKeys test_keys() { return *RunKeys::parse(std::string(64, '5')); }

}  // namespace syncopate::testing_support
