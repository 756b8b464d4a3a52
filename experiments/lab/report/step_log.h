// StepLog: the records of one worker's steps, in the order in which they arrived. A run of days makes more of them than
// fit in memory, so that all but the newest lie in an unnamed file, which is deleted with the log. Used by one thread.
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
  // The records as they lie in the file, mapped into memory. They stay valid as long as the View lives, even without
  // the log.
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

  // Creates the unnamed file on the disk of `directory`. This and the other methods fail with resource exhausted, the
  // path and the system's reason.
  static Result<StepLog> create(const std::string& directory);

  // Adds a record. After a failure, records that could not be written stay in memory.
  Status add(const StepRecord& step);
  // Returns all records that have been added.
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
