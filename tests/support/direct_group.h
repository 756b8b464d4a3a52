// A group of direct collectives whose ranks are threads of one test.
#pragma once

#include <memory>
#include <vector>

#include "allreduce/collective.h"

namespace syncopate::testing_support {

// One a rank, connected.
std::vector<std::unique_ptr<allreduce::Collective>> connect_direct(int size);

}  // namespace syncopate::testing_support
