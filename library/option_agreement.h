// Whether all ranks were given the same options: those that differ would train different models, or sum what does not
// belong together.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"
#include "library/group.h"
#include "library/training_options.h"

namespace syncopate::library {

// Ok if all ranks, whose options are given by rank, have the same. Otherwise fails with invalid argument and names each
// option that differs, with the value of each rank: "compress: none on rank 0, int8 on rank 1". Where mode, update or
// optimizer differ, which bring other options with them, it names the first of these alone. Pure.
Status check_alike(const std::vector<OptionTexts>& by_rank);

// An operation of all ranks: the same, for what each of them calls it with. `name` is used once in the group's life.
// Fails on every rank alike; and as the rendezvous does.
Status agree_on_options(Group& group, const std::string& name, const OptionTexts& own);

}  // namespace syncopate::library
