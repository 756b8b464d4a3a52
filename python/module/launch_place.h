// Who this process is among the ranks that a launcher has started (common/launch/task_place.h), as Python calls it.
#pragma once

#include <nanobind/nanobind.h>

namespace syncopate::python {

// Adds rank_place() and meeting_address().
void define_launch_place(nanobind::module_& module);

}  // namespace syncopate::python
