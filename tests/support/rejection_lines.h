// How an intruder speaks to a run's sockets: as one of its processes would, but without its keys.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <zmq.hpp>

#include "common/os/file_descriptor.h"
#include "experiments/cluster/control/control.pb.h"
#include "tests/support/visible_run.h"

namespace syncopate::testing_support {

// A control connection in the name of `identity`.
class ForgedLine {
 public:
  ForgedLine(zmq::context_t& context, const std::string& address, const std::string& identity);

  void hello(const std::string& run, std::int64_t pid);
  // With so many weights behind it, all zero.
  void say(const experiments::control::ToCoordinator& message, std::size_t weights = 0);
  // Takes what comes until nothing has come for so long.
  void listen(std::chrono::milliseconds patience);

  std::int64_t messages() const { return messages_; }  // that the coordinator has sent
  std::int64_t floats() const { return floats_; }      // of weights among them

 private:
  zmq::socket_t socket_;
  std::int64_t messages_ = 0;
  std::int64_t floats_ = 0;
};

// Connects to a place that `listening_places` names, without waiting: of what refuses, not open.
FileDescriptor raw_connection(const std::string& place);

// Sends these bytes as one message with these descriptors, if the other end takes it at once.
void send_with_files(const FileDescriptor& connection, std::string_view bytes, std::span<const int> files);

// Waits for the run's first process. Throws where none comes.
VisibleRun await_run(pid_t coordinator);

// Does it again and again until the coordinator has ended, `most` times at most. How often it did.
int until_the_end(pid_t coordinator, int most, const std::function<void(int attempt)>& attempt);

}  // namespace syncopate::testing_support
