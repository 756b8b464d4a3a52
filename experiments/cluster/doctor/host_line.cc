#include "experiments/cluster/doctor/host_line.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace syncopate::experiments {
namespace {

using Json = nlohmann::json;

struct Pipe {
  FileDescriptor read_end, write_end;
};

Pipe make_pipe() {
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) != 0) return {};
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

}  // namespace

HostLine::HostLine(const std::vector<std::string>& command, const SecretText& keys) : lines_(-1) {
  Pipe pipe = make_pipe();
  output_ = std::move(pipe.read_end);
  lines_ = LineReader(output_.get());
  Result<StartedChild> child =
      start_child(command, {}, "an agent", fmt::format("/proc/self/fd/{}", pipe.write_end.get()), keys.view());
  if (!child.ok()) {
    failure_ = child.status();
    return;
  }
  child_ = std::move(*child);
}

HostLine::~HostLine() {
  if (!child_) return;
  std::vector<StartedChild> all;
  all.push_back(std::move(*child_));
  kill_and_reap(all);
}

void HostLine::send(const Json& request) {
  const std::string line = request.dump() + "\n";
  // A pipe takes so little at once; one that nobody reads any more is told by receive().
  if (child_) (void)!write(child_->input.get(), line.data(), line.size());
}

Result<Json> HostLine::receive(TimePoint deadline) {
  if (!failure_.ok()) return failure_;
  while (true) {
    const Result<std::string> line = lines_.next(deadline);
    if (!line.ok()) {
      failure_ = line.status().code() == Code::kPeerLost ? Status::peer_lost(how_it_ended()) : line.status();
      return failure_;
    }
    Json json = Json::parse(*line, nullptr, false);
    if (json.is_object()) return json;
    if (line->find_first_not_of(" \t\r") != std::string::npos) last_said_ = line->substr(0, line->find('\r'));
  }
}

std::string HostLine::how_it_ended() {
  int status = 0;
  waitpid(child_->pid, &status, 0);
  child_.reset();
  const std::string end = WIFSIGNALED(status) ? fmt::format("was killed by signal {}", WTERMSIG(status))
                                              : fmt::format("ended with exit code {}", WEXITSTATUS(status));
  return fmt::format("the remote shell {}{}{}", end, last_said_.empty() ? "" : ": ", last_said_);
}

}  // namespace syncopate::experiments
