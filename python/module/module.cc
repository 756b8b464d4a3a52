// syncopate._core: what Python calls. Nothing here knows torch. Every call that may wait releases the interpreter's
// lock.
#include <nanobind/nanobind.h>

#include "library/server.h"
#include "library/training_options.h"
#include "module/exchanges.h"
#include "module/failure.h"
#include "module/job.h"
#include "module/launch_place.h"
#include "module/step_file.h"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace syncopate::python {

using namespace library;

NB_MODULE(_core, module) {
  translate_failures();
  // At exit Python may drop the module before objects of it; what it says of that is of no use to a user.
  nb::set_leak_warnings(false);

  module.def(
      "check_learning_rate", [](double rate) { check(check_learning_rate(rate)); }, "rate"_a,
      "Raises ValueError unless a step can be made at this rate.");

  module.def(
      "run_server",
      [](nb::callable update) {
        const ps::UpdateFunction function = [&update](Range place, std::span<float> weights,
                                                      std::span<const float> gradient, float scale, double rate) {
          const nb::gil_scoped_acquire lock;
          update(place.begin, reinterpret_cast<Address>(weights.data()), reinterpret_cast<Address>(gradient.data()),
                 scale, rate);
        };
        const nb::gil_scoped_release unlocked;
        return run_server(&function);
      },
      "update"_a,
      "The whole of a parameter server's process, whose updates the function makes: of the tensor that begins there in "
      "the arena, at the addresses of weights and gradient, with the gradient's scale and the rate. Returns its exit "
      "code. The function must raise nothing.");

  define_launch_place(module);
  define_job(module);
  define_step_file(module);
  define_exchanges(module);
}

}  // namespace syncopate::python
