// Orders to signal a process that another host or a task has: they come on the standard input of what stands beside it
// there (guard.h, tasks/task_shell.h), between the lines of text that are for the process. An order is a zero byte,
// which no text has, and the number of the signal.
#pragma once

#include <functional>
#include <span>
#include <string>

namespace syncopate::experiments {

// Returns the order. Requires SIGKILL, SIGSTOP or SIGCONT: others are not obeyed.
std::string signal_order(int signal);

// Reads input as it comes in pieces.
class SignalOrders {
 public:
  // Takes the orders out of `bytes`: calls `obey` with the signal of each, and moves what is left to the front. Returns
  // how many bytes that is.
  std::size_t take(std::span<char> bytes, const std::function<void(int signal)>& obey);

 private:
  bool is_begun_ = false;  // the last byte was a zero
};

}  // namespace syncopate::experiments
