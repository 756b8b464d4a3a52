// --resume=auto: the same command goes on where it was interrupted. What a run before this one has left in the folder
// of the results says whether there is something to go on from. Nothing of it is lost: its files, but for its
// checkpoints, move to DIR/before-1, DIR/before-2 and so on, and the checkpoints stay where the run goes on writing
// them.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "common/status.h"
#include "experiments/config/resolved_run.h"
#include "experiments/lab/report/results_folder.h"

namespace syncopate::experiments {

class AutoResume {
 public:
  enum class Kind {
    kBegin,      // there is no checkpoint: the run begins at its first step
    kGoOn,       // from a checkpoint in config.output
    kCompleted,  // the run has been completed as far as is asked for: nothing is left to do
  };

  // Looks into config.output, and takes it for this object (creating it, if need be), so that two of the same command
  // do not write there at once; a dry run looks only. Fails with invalid argument, naming the settings that differ, if
  // a run with others was begun there; if a completed run has no checkpoint to go on from; if somebody has the folder;
  // or if it holds something else than a run.
  static Result<AutoResume> look(const ResolvedRun& config);

  Kind kind() const { return kind_; }
  // What it has found, for a person; empty: nothing worth a line.
  const std::string& line() const { return line_; }

  // Moves what the run before has left aside. Fails with resource exhausted.
  Status set_aside();

 private:
  explicit AutoResume(std::string folder) : folder_(std::move(folder)) {}

  std::string folder_;
  std::optional<ResultsFolder> taken_;  // none: a dry run
  Kind kind_ = Kind::kBegin;
  std::string line_;
  std::string aside_;  // where files are to go; empty: there are none
};

}  // namespace syncopate::experiments
