#include "experiments/cluster/process/shared_keys.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "common/os/readiness.h"

namespace syncopate::experiments {

namespace {

// A buffer for a line, which is wiped at the end.
class Line {
 public:
  ~Line() { explicit_bzero(text_, sizeof(text_)); }
  char* end() { return text_ + size_; }
  std::size_t room() const { return sizeof(text_) - size_; }
  void grow(std::size_t more) { size_ += more; }
  bool is_complete() const { return view().find('\n') != std::string_view::npos; }
  // The text without its line break, once the line is complete.
  std::string_view view() const { return std::string_view(text_, size_); }
  SecretText secret() const { return SecretText(view().substr(0, view().find('\n'))); }

 private:
  char text_[512];  // a run's secret takes 65 bytes
  std::size_t size_ = 0;
};

}  // namespace

Result<FileDescriptor> lend(std::string_view line, bool inherited) {
  FileDescriptor shared(memfd_create("keys", inherited ? 0 : MFD_CLOEXEC));
  const SecretText text(line, "\n");
  const auto size = static_cast<ssize_t>(text.view().size());
  if (!shared.open() || write(shared.get(), text.view().data(), text.view().size()) != size) {
    return Status::internal(fmt::format("cannot lend the run's keys: {}", strerror(errno)));
  }
  return shared;
}

std::string path_of(const FileDescriptor& shared) { return fmt::format("/proc/{}/fd/{}", getpid(), shared.get()); }

Result<SecretText> shared_line() {
  const char* const path = std::getenv(kSharedKeys);
  if (path == nullptr) return Status::internal(fmt::format("the run's keys are not shared: no {}", kSharedKeys));
  const FileDescriptor file(open(path, O_RDONLY | O_CLOEXEC));
  Line line;
  while (file.open() && !line.is_complete()) {
    const ssize_t count = read(file.get(), line.end(), line.room());
    if (count <= 0) break;
    line.grow(static_cast<std::size_t>(count));
  }
  if (!line.is_complete()) {
    return Status::peer_lost(fmt::format("the run's keys are not shared any more at {}", path));
  }
  return line.secret();
}

Result<SecretText> line_on_stdin(TimePoint deadline) {
  Line line;
  while (!line.is_complete()) {
    if (!ready_before(deadline, STDIN_FILENO))
      return Status::deadline_exceeded("the run's keys have not come on standard input");
    // Reads byte by byte, since what follows the line is not for us.
    if (line.room() == 0 || read(STDIN_FILENO, line.end(), 1) != 1) {
      return Status::peer_lost("standard input has ended before the run's keys came; a remote shell must pass it on");
    }
    line.grow(1);
  }
  return line.secret();
}

}  // namespace syncopate::experiments
