// StepLog: the records of one worker's steps, in the order in which they came. A run of days makes more of them than
// fit in memory: all but the newest lie in a file without a name, which goes with the log. One thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/os/file_descriptor.h"
#include "common/status.h"
#include "common/step_record.h"

namespace syncopate::experiments {

class StepLog {
 public:
  // Records as they lie in the file, mapped: valid as long as this lives, whatever becomes of the log.
  class View {
   public:
    View() = default;
    View(View&& other) noexcept;
    View& operator=(View&& other) noexcept;
    ~View();
    std::span<const StepRecord> steps() const { return steps_; }

   private:
    friend StepLog;
    explicit View(std::span<const StepRecord> mapping) : steps_(mapping) {}
    std::span<const StepRecord> steps_;
  };

  // The file takes room on the disk of `directory`. Fails with resource exhausted, the path and the system's reason; as
  // do all others.
  static Result<StepLog> create(const std::string& directory);

  // After a failure what could not be written is kept in memory.
  Status add(const StepRecord& step);
  // All that have been added.
  Result<View> all();

 private:
  StepLog(FileDescriptor file, std::string directory);
  Status write_newest();
  Status failure(const char* what) const;

  FileDescriptor file_;
  std::string directory_;
  std::vector<StepRecord> newest_;  // not in the file yet
  std::size_t written_ = 0;         // records
};

}  // namespace syncopate::experiments
