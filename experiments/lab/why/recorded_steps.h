// RecordedSteps: the steps of a finished run, read back from its steps.csv. Pure: a text in, records out. The file is
// not trusted: a malformed one is an error that says what is wrong, and names no path.
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "common/step_record.h"
#include "experiments/lab/report/steady_window.h"

namespace syncopate::experiments {

struct RecordedSteps {
  // In the order in which they were recorded. They end at the time since training began. A loss or an accuracy that was
  // not recorded is no number.
  std::map<int, std::vector<StepRecord>> of_workers;

  std::size_t count() const;
  // Returns all of them in the order in which they ended, those that ended together by worker. They must outlive it.
  std::vector<StepOfWorker> by_end() const;
};

// Reads the steps of one repeat. Columns of later versions are ignored; those that older runs lack are as if nothing
// had been recorded. Fails with data loss if a line is malformed or a column is missing that all runs have.
Result<RecordedSteps> read_steps(std::string_view csv, int repeat);

}  // namespace syncopate::experiments
