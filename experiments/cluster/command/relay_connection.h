// RelayConnection: run_experiment's end of a relay (relay.h). It writes what the relay sends into files, as if the
// program below it had written them here, and compares the clocks of both hosts. Used by one thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/clock.h"
#include "common/os/file_descriptor.h"
#include "common/status.h"
#include "experiments/cluster/command/relay_protocol.h"
#include "experiments/cluster/control/clock_offset.h"

namespace syncopate::experiments {

class RelayConnection {
 public:
  // What the program prints is appended to `log_file`; its file of steps is made anew as `step_file`. Fails with
  // resource exhausted.
  static Result<RelayConnection> open(const std::string& log_file, const std::string& step_file);

  // Where the relay's standard output is to go. Closed once it has been started.
  int output() const { return write_end_.get(); }
  void close_output() { write_end_ = FileDescriptor(); }
  // Readable once something has come; -1 once nothing can come any more.
  int handle() const { return read_end_.get(); }

  // Takes what has come, and asks for the time if that is due. `input` is the other end of the relay's standard input,
  // which does not block. Fails with data loss if what has come is none of a relay's, and with resource exhausted if it
  // cannot be written; after that the relay is ended.
  Status exchange(int input, const Clock& clock);
  // Sends an order, unless the relay is gone or takes none.
  static void send(int input, const RelayOrder& order);

  // Where the relay's host is reached, once the relay is there and its clock has been compared.
  std::optional<RelayReady> ready() const {
    return clock_.exchanges() >= ClockOffset::kExchanges ? ready_ : std::nullopt;
  }
  // How the program has ended, once it has, and all that it has told is in the files.
  const std::optional<RelayEnd>& end() const { return end_; }
  // How far the clock of the relay's host is ahead of ours; known once ready() is.
  std::optional<ClockOffset::Estimate> clock() const { return clock_.estimate(); }

 private:
  RelayConnection() = default;

  Status receive(const Clock& clock);
  Status take(const RelayMessage& message, TimePoint received);

  FileDescriptor read_end_, write_end_;
  FileDescriptor log_, steps_;
  std::string log_file_, step_file_;
  RelayReader reader_;
  std::optional<RelayReady> ready_;
  std::optional<RelayEnd> end_;
  ClockOffset clock_;
  bool is_asked_ = false;  // a question has not been answered yet
  TimePoint last_question_{};
};

}  // namespace syncopate::experiments
