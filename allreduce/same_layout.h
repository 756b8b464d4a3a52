// The proof that all ranks of a collective train the same layout, before they exchange floats that mean nothing else.
#pragma once

#include "allreduce/collective.h"
#include "common/param_layout.h"

namespace syncopate::allreduce {

// Every rank calls it. Invalid argument, saying whose layout differs, on every rank that finds one unlike its own.
Status prove_same_layout(Collective& collective, const ParamLayout& layout, TimePoint deadline);

}  // namespace syncopate::allreduce
