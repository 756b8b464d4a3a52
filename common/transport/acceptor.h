// Acceptor: takes the connections that come to a listener. Where no file descriptor is left for one it says so once,
// and lets the listener rest for a moment, which else would be ready again and again.
#pragma once

#include <string>

#include "common/clock.h"
#include "common/os/file_descriptor.h"

namespace syncopate {

class Acceptor {
 public:
  // `listener` listens and does not block. `name` is that of its endpoint, for warnings.
  Acceptor(FileDescriptor listener, std::string name) : listener_(std::move(listener)), name_(std::move(name)) {}

  // The listener, or -1 while it rests.
  int to_poll() const { return clock_.now() < rests_until_ ? -1 : listener_.get(); }
  // The next connection, made with such flags of accept4(2); not open if there is none.
  FileDescriptor accept(int flags);
  // Whether the last one could not be taken, for want of what connections take. One that is closed may make room.
  bool is_short() const { return clock_.now() < rests_until_; }
  // What has been wanting, as the end of a sentence on connections that did not come; empty if nothing was.
  const std::string& shortage() const { return shortage_; }

 private:
  FileDescriptor listener_;
  std::string name_;
  SteadyClock clock_;
  TimePoint rests_until_{};
  std::string shortage_;
};

}  // namespace syncopate
