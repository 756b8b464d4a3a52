#include "experiments/cluster/doctor/line_reader.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

namespace syncopate::experiments {

Result<std::string> LineReader::next(TimePoint deadline) {
  while (true) {
    if (const std::size_t end = rest_.find('\n'); end != std::string::npos) {
      std::string line = rest_.substr(0, end);
      rest_.erase(0, end + 1);
      return line;
    }
    if (rest_.size() > kMostLine) return Status::data_loss("a line that does not end");
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock().now());
    pollfd item{.fd = descriptor_, .events = POLLIN, .revents = 0};
    const int ready = poll(&item, 1, static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 1'000'000)));
    if (ready == 0) return Status::deadline_exceeded("no answer in time");
    if (ready < 0 && errno == EINTR) continue;
    char bytes[4096];
    const ssize_t count = read(descriptor_, bytes, sizeof(bytes));
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count <= 0) return Status::peer_lost("the end of the input");
    rest_.append(bytes, static_cast<std::size_t>(count));
  }
}

}  // namespace syncopate::experiments
