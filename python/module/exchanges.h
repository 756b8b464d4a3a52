// What becomes of a step's gradients, and updates of tensors that lie anywhere, as Python calls it.
#pragma once

#include <nanobind/nanobind.h>

namespace syncopate::python {

// Adds SumExchange, StrategyExchange, FusedUpdate, ranges_of() and all_finite(). Requires Group and SyncStats.
void define_exchanges(nanobind::module_& module);

}  // namespace syncopate::python
