#include "module/failure.h"

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

namespace nb = nanobind;

namespace syncopate::python {

using namespace library;

namespace {

bool is_loss(const Failure& failure) {
  const Code code = failure.status().code();
  return failure.loss() || code == Code::kPeerLost || code == Code::kDeadlineExceeded || code == Code::kCancelled;
}

// "rank 1 (pid 4711 on node1) is gone: exchanging gradients in step 17"
std::string text_of(const Failure& failure) {
  std::string where = failure.operation();
  if (failure.step() >= 0) where += fmt::format(" in step {}", failure.step());
  if (failure.loss()) return fmt::format("{}: {}", library::describe(*failure.loss()), where);
  return where.empty() ? failure.what() : fmt::format("{}: {}", where, failure.what());
}

void raise(const Failure& failure) {
  const nb::object errors = nb::module_::import_("syncopate.errors");
  const bool lost = is_loss(failure);
  const bool is_refused = failure.status().code() == Code::kInvalidArgument;
  const nb::object type = lost         ? errors.attr("PeerLost")
                          : is_refused ? nb::borrow(PyExc_ValueError)
                                       : errors.attr("SyncopateError");
  if (!lost) {
    PyErr_SetObject(type.ptr(), nb::str(text_of(failure).c_str()).ptr());
    return;
  }
  const std::optional<Loss>& loss = failure.loss();
  const nb::object rank = loss && loss->process.rank >= 0 ? nb::object(nb::int_(loss->process.rank)) : nb::none();
  const nb::object host = loss ? nb::object(nb::str(loss->process.host.c_str())) : nb::none();
  const nb::object step = failure.step() >= 0 ? nb::object(nb::int_(failure.step())) : nb::none();
  const nb::object error = type(text_of(failure), rank, host, failure.operation(), step);
  PyErr_SetObject(type.ptr(), error.ptr());
}

}  // namespace

void translate_failures() {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Failure& failure) {
      try {
        raise(failure);
      } catch (nb::python_error& error) {
        error.restore();
      }
    }
  });
}

}  // namespace syncopate::python
