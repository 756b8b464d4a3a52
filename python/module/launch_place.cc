#include "module/launch_place.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <string>
#include <tuple>

#include "common/launch/task_place.h"
#include "module/failure.h"

namespace nb = nanobind;

namespace syncopate::python {
namespace {

TaskPlace own_place() {
  const FoundPlace place = syncopate::rank_place(own_variables());
  check(place.status());
  return place->value_or(TaskPlace());
}

std::tuple<int, int, int> rank_place() {
  const TaskPlace place = own_place();
  return {place.rank, place.size, place.local_rank};
}

std::tuple<std::string, std::string, std::string> meeting_address() {
  const TaskPlace place = own_place();
  const Result<std::string> address = syncopate::meeting_address(place, own_variables());
  check(address.status());
  const std::size_t colon = address->rfind(':');
  return {address->substr(0, colon), address->substr(colon + 1), place.by == StartedBy::kTorchrun ? "" : place.job};
}

}  // namespace

void define_launch_place(nb::module_& module) {
  module.def("rank_place", &rank_place,
             "Rank, number of ranks and local rank of this process, as its environment says them; 0, 1 and 0 alone.");
  module.def(
      "meeting_address", &meeting_address,
      "Host and port where the ranks meet, and what mpirun or srun calls the job, else empty. Requires several.");
}

}  // namespace syncopate::python
