// A command that a remote shell runs on another host for what it prints.
#pragma once

#include <optional>
#include <string>

#include "common/clock.h"
#include "common/os/file_descriptor.h"
#include "common/status.h"
#include "experiments/cluster/launcher/launcher.h"
#include "experiments/config/remote_shell.h"

namespace syncopate::experiments {

// A host that is being asked. The object ends the remote shell if it has not ended by itself.
class RemoteQuestion {
 public:
  // Has `shell` run `command`, a text for the shell on `host`.
  RemoteQuestion(const RemoteShell& shell, const std::string& host, const std::string& command);
  RemoteQuestion(RemoteQuestion&&) = default;
  RemoteQuestion& operator=(RemoteQuestion&&) = delete;
  ~RemoteQuestion();

  const std::string& host() const { return host_; }
  // Waits until the remote shell has ended, and returns its status as waitpid() has it; none if it has not ended by the
  // deadline. Fails with invalid argument if the shell could not be started. May be called once.
  Result<std::optional<int>> status_before(TimePoint deadline);
  // Return what has been printed, of it at most 1 MiB, and the last line of that which says anything.
  std::string answer() const;
  std::string last_line() const;

 private:
  std::string host_;
  FileDescriptor answer_;  // a memory file
  std::optional<StartedChild> shell_;
  Status failure_;
};

}  // namespace syncopate::experiments
