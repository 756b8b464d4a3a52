// Acceptor: accepts the connections of a listener. If no file descriptor is left for one, it reports so once, and
// pauses for a moment, since the listener would otherwise be ready again and again.
#pragma once

#include <string>

#include "common/clock.h"
#include "common/os/file_descriptor.h"

namespace syncopate {

class Acceptor {
 public:
  // `listener` must be listening and non-blocking. `name` is the name of its endpoint, for warnings.
  Acceptor(FileDescriptor listener, std::string name) : listener_(std::move(listener)), name_(std::move(name)) {}

  // The listener, or -1 during a pause.
  int to_poll() const { return clock_.now() < rests_until_ ? -1 : listener_.get(); }
  // Accepts the next connection with these flags of accept4(2); the result is not open if there is none.
  FileDescriptor accept(int flags);
  // Whether the last connection could not be accepted for want of resources. Closing a connection may free some.
  bool is_short() const { return clock_.now() < rests_until_; }
  // The resource that was lacking, as the end of a sentence about missing connections; empty if none was.
  const std::string& shortage() const { return shortage_; }

 private:
  FileDescriptor listener_;
  std::string name_;
  SteadyClock clock_;
  TimePoint rests_until_{};
  std::string shortage_;
};

}  // namespace syncopate
