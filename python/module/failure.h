// How a Status becomes an exception of Python's: syncopate/errors.py says which there are.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "common/status.h"
#include "library/group.h"

namespace syncopate::python {

class Failure final : public std::exception {
 public:
  Failure(Status status, std::optional<library::Loss> loss, std::string operation, std::int64_t step)
      : status_(std::move(status)), loss_(std::move(loss)), operation_(std::move(operation)), step_(step) {}

  const char* what() const noexcept override { return status_.message().c_str(); }
  const Status& status() const { return status_; }
  const std::optional<library::Loss>& loss() const { return loss_; }
  const std::string& operation() const { return operation_; }
  std::int64_t step() const { return step_; }

 private:
  Status status_;
  std::optional<library::Loss> loss_;
  std::string operation_;
  std::int64_t step_;
};

// What a call did, for errors.
struct Doing {
  std::string operation;
  std::int64_t step = -1;  // -1 outside of steps
  int missed = -1;         // the rank that was waited for, if known
};

// Throw unless it is ok.
inline void check(const Status& status) {
  if (!status.ok()) throw Failure(status, std::nullopt, "", -1);
}
inline void check(const Status& status, const library::Group& group, const Doing& doing) {
  if (!status.ok()) throw Failure(status, group.loss_behind(status, doing.missed), doing.operation, doing.step);
}
template <typename T>
T check(Result<T> result, const library::Group& group, const Doing& doing) {
  check(result.status(), group, doing);
  return std::move(*result);
}

// Makes Failure, wherever it is thrown, one of Python's exceptions.
void translate_failures();

}  // namespace syncopate::python
