#include "common/os/exhaustion.h"

#include <fmt/format.h>

#include <cerrno>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <zmq.hpp>

#include "common/os/resource_limits.h"

namespace syncopate {
namespace {

Status out_of_memory() {
  const std::string limit = limit_behind(ENOMEM);
  return Status::resource_exhausted(
      "out of memory" +
      (limit.empty() ? "; use fewer processes, a smaller model or batch, or a larger machine" : limit));
}

Status status_of_error(int error, const std::string& what) {
  if (error == ENOMEM) return out_of_memory();
  const bool is_exhausted = error == EAGAIN || error == EMFILE || error == ENFILE;
  return Status(is_exhausted ? Code::kResourceExhausted : Code::kInternal, what + limit_behind(error));
}

}  // namespace

Status status_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::length_error& error) {
    return Status::resource_exhausted(
        fmt::format("something is larger than memory can be ({}); use a smaller model or batch", error.what()));
  } catch (const zmq::error_t& error) {
    return status_of_error(error.num(), fmt::format("ZeroMQ: {}", error.what()));
  } catch (const std::system_error& error) {
    const int number = error.code().value();
    return status_of_error(
        number, number == EAGAIN ? fmt::format("no thread can be started: {}", error.code().message()) : error.what());
  } catch (const std::exception& error) {
    return Status::internal(fmt::format("a library has thrown: {}", error.what()));
  } catch (...) {
    return Status::internal("a library has thrown something unknown");
  }
}

}  // namespace syncopate
