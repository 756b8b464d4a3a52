// A check of the two halves of an all_reduce, for any collective.
#pragma once

#include <cstddef>

#include "allreduce/collective.h"

namespace syncopate::testing_support {

// On every rank of a group: reduce_scatter and all_gather leave the bits of all_reduce, and each moves half of its
// bytes.
void expect_sums_by_halves(allreduce::Collective& collective, std::size_t length);

}  // namespace syncopate::testing_support
