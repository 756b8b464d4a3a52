#include "experiments/cluster/launcher/remote_question.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <utility>
#include <vector>

namespace syncopate::experiments {
namespace {

constexpr off_t kMostAnswer = 1 << 20;

}  // namespace

RemoteQuestion::RemoteQuestion(const RemoteShell& shell, const std::string& host, const std::string& command)
    : host_(host), answer_(memfd_create("answer", MFD_CLOEXEC)) {
  Result<StartedChild> child = start_child(through_remote_shell(shell, host, command), {}, "the remote shell",
                                           fmt::format("/proc/self/fd/{}", answer_.get()));
  if (child.ok()) {
    shell_ = std::move(*child);
  } else {
    failure_ = Status::invalid_argument(fmt::format("the remote shell {} cannot be started", shell.words.front()));
  }
}

RemoteQuestion::~RemoteQuestion() {
  if (!shell_ || !shell_->handle.open()) return;
  std::vector<StartedChild> late;
  late.push_back(std::move(*shell_));
  kill_and_reap(late);
}

Result<std::optional<int>> RemoteQuestion::status_before(TimePoint deadline) {
  SYNCOPATE_RETURN_IF_ERROR(failure_);
  if (!shell_->handle.ends_before(deadline)) return std::optional<int>();
  int status = 0;
  waitpid(shell_->pid, &status, 0);
  shell_.reset();
  return std::optional<int>(status);
}

std::string RemoteQuestion::answer() const {
  std::string text(static_cast<std::size_t>(std::min(kMostAnswer, lseek(answer_.get(), 0, SEEK_END))), '\0');
  const ssize_t count = pread(answer_.get(), text.data(), text.size(), 0);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return text;
}

std::string RemoteQuestion::last_line() const {
  std::istringstream lines(answer());
  std::string line, last;
  while (std::getline(lines, line)) {
    if (line.find_first_not_of(" \t\r") != std::string::npos) last = line.substr(0, line.find('\r'));
  }
  return last;
}

}  // namespace syncopate::experiments
