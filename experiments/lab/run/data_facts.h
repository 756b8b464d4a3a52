// What a run must know of its data set before it starts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "experiments/config/resolved_run.h"
#include "experiments/lab/report/learning_words.h"

namespace syncopate::experiments {

struct DataFacts {
  std::int64_t train_samples = 0;
  std::optional<double> best_loss = {};   // on the test set, if known
  std::optional<Guessing> guessing = {};  // on its test set
  // These are of a person's own data alone; else empty.
  std::string description = {};         // "120 samples to train, 30 to test; 4 values a sample; 3 classes: ..."
  std::vector<std::string> notes = {};  // on how it was read
  std::string sum = {};                 // a checksum of all samples; only where checkpoints are written or read
};

// Opens the data set; digits are then generated once for all processes. Fails as open_data_of() does.
Result<DataFacts> data_facts_of(const ResolvedRun& config);

// Returns in words which training samples each epoch leaves out, since they fill no batch of all workers, and what
// trains them too. Empty: none; or so few of a set that is not a person's own that nobody needs to know.
std::string left_out_text(const ResolvedRun& config, std::int64_t train_samples);

}  // namespace syncopate::experiments
