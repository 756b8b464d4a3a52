#include "experiments/cluster/doctor/line_reader.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "common/os/readiness.h"

namespace syncopate::experiments {

Result<std::string> LineReader::next(TimePoint deadline) {
  while (true) {
    if (const std::size_t end = rest_.find('\n'); end != std::string::npos) {
      std::string line = rest_.substr(0, end);
      rest_.erase(0, end + 1);
      return line;
    }
    if (rest_.size() > kMostLine) return Status::data_loss("a line that does not end");
    if (!ready_before(deadline, descriptor_)) return Status::deadline_exceeded("no answer in time");
    char bytes[4096];
    const ssize_t count = read(descriptor_, bytes, sizeof(bytes));
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count <= 0) return Status::peer_lost("the end of the input");
    rest_.append(bytes, static_cast<std::size_t>(count));
  }
}

}  // namespace syncopate::experiments
