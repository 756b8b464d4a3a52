// RunningRuns: the runs of one user that are under way on this host. Each has a file in a folder of the user's own,
// which it keeps locked; the kernel drops the lock with the process, so that a file that is not locked is of a run that
// has ended, whoever has its process id by now.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/os/file_descriptor.h"
#include "common/status.h"

namespace syncopate::experiments {

struct RunningRun {
  pid_t pid = 0;
  std::string command;  // "run", "compare", "study"
  std::string job;      // what it trains, in a line
  std::string results;  // the folder, as an absolute path
  std::string started;  // calendar_text()

  // Returns its name: the last part of its folder.
  std::string name() const;
};

class RunningRuns {
 public:
  // Returns those of this user: in $XDG_RUNTIME_DIR/syncopate, or, without that, in /tmp/syncopate-UID. Fails with
  // invalid argument if there is such a folder that others could write to.
  static Result<RunningRuns> of_user();
  explicit RunningRuns(std::string folder) : folder_(std::move(folder)) {}

  // Lets others find this process's run for as long as the result lives. Fails with resource exhausted if the file
  // cannot be written.
  class Entry {
   public:
    Entry(std::string path, FileDescriptor file) : path_(std::move(path)), file_(std::move(file)) {}
    ~Entry();
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

   private:
    const std::string path_;
    const FileDescriptor file_;
  };
  Result<std::unique_ptr<Entry>> add(const RunningRun& run) const;

  // Returns all that are under way, by process id, and removes the files of others.
  std::vector<RunningRun> list() const;

  // Asks a run to end as Ctrl-C does, and waits until it has. `which` is its name, its folder or its process id.
  // Returns the run. Fails with invalid argument if no run, or more than one, is called so, and with deadline exceeded.
  Result<RunningRun> stop(const std::string& which, Duration patience) const;

 private:
  std::string folder_;
};

}  // namespace syncopate::experiments
