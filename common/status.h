// Status and Result: the outcome of an operation that a peer, a file or a person can cause to fail. Violated invariants
// of our own code are assertions, not statuses.
#pragma once

#include <cassert>
#include <string>
#include <utility>
#include <variant>

namespace syncopate {

enum class Code {
  kOk,
  kInvalidArgument,    // a flag, a configuration, a call that cannot work
  kNotFound,           // a file or a name that does not exist
  kDataLoss,           // bytes with wrong contents: corrupt, truncated, of another version
  kDeadlineExceeded,   // a wait whose condition did not become true in time
  kPeerLost,           // the process at the other end is gone
  kCancelled,          // stopped from outside
  kResourceExhausted,  // disk or memory is full, or may not be written
  kInternal,           // a library or the kernel refused what should have worked
};

// The code's name in lower case, as in "deadline exceeded".
const char* name_of(Code code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  static Status invalid_argument(std::string message) { return {Code::kInvalidArgument, std::move(message)}; }
  static Status not_found(std::string message) { return {Code::kNotFound, std::move(message)}; }
  static Status data_loss(std::string message) { return {Code::kDataLoss, std::move(message)}; }
  static Status deadline_exceeded(std::string message) { return {Code::kDeadlineExceeded, std::move(message)}; }
  static Status peer_lost(std::string message) { return {Code::kPeerLost, std::move(message)}; }
  static Status cancelled(std::string message) { return {Code::kCancelled, std::move(message)}; }
  static Status resource_exhausted(std::string message) { return {Code::kResourceExhausted, std::move(message)}; }
  static Status internal(std::string message) { return {Code::kInternal, std::move(message)}; }

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  // For people: what was wrong, with the value, and what would be right. Empty if ok.
  const std::string& message() const { return message_; }
  // Returns the same failure with `where: ` before its message.
  Status in(const std::string& where) const;

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

// Either a T or the Status that explains why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}
  Result(Status status) : state_(std::move(status)) { assert(!this->status().ok()); }

  bool ok() const { return std::holds_alternative<T>(state_); }
  Status status() const { return ok() ? Status() : std::get<Status>(state_); }
  T& operator*() { return std::get<T>(state_); }
  const T& operator*() const { return std::get<T>(state_); }
  T* operator->() { return &std::get<T>(state_); }
  const T* operator->() const { return &std::get<T>(state_); }

 private:
  std::variant<T, Status> state_;
};

}  // namespace syncopate

// Returns the Status of `expression` from the enclosing function unless it is ok.
#define SYNCOPATE_RETURN_IF_ERROR(expression)            \
  do {                                                   \
    ::syncopate::Status syncopate_status = (expression); \
    if (!syncopate_status.ok()) return syncopate_status; \
  } while (false)

// Returns the Status of `expression`, a Result, from the enclosing function unless it is ok; else moves its value into
// `declaration`, which is a new variable (`const Plan plan`) or an existing one (`plan_`).
#define SYNCOPATE_ASSIGN_OR_RETURN(declaration, expression) \
  SYNCOPATE_ASSIGN_THROUGH(SYNCOPATE_NAME_OF_LINE(syncopate_result_, __LINE__), declaration, expression)

#define SYNCOPATE_ASSIGN_THROUGH(result, declaration, expression) \
  auto result = (expression);                                     \
  if (!result.ok()) return result.status();                       \
  declaration = std::move(*result)
#define SYNCOPATE_NAME_OF_LINE(name, line) SYNCOPATE_JOINED_NAME(name, line)
#define SYNCOPATE_JOINED_NAME(name, number) name##number
