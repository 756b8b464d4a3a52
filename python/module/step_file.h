// What a script that run_experiment has started tells of its steps (common/step_file.h), as Python calls it.
#pragma once

#include <nanobind/nanobind.h>

namespace syncopate::python {

// Adds Tracer and StepFile. Requires SyncStats.
void define_step_file(nanobind::module_& module);

}  // namespace syncopate::python
