// How long a step of a known model takes on a known device, as others have measured it: published/device_steps.csv,
// where each row has its source. Pure.
//
// The rows of one device, model and precision are of one source. A model named torchvision-X has the steps of X, whose
// work is the same within 5 %.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"

namespace syncopate::prediction {

struct TypicalStep {
  int batch_size = 0;
  double seconds = 0;  // forward and backward of one batch
  std::string
      basis;  // the rows that it is from, and their source: "fp32, 219 samples/s in batches of 64; TensorFlow ..."
};

// The devices of the table, sorted.
const std::vector<std::string>& device_names();

// Whether the text is one of them, or one with a precision behind it, as in "a100:amp".
bool names_device(std::string_view text);

// Returns the step of `batch_size` samples; 0 takes the largest batch of the table. Between two batch sizes of the
// table time grows evenly from the one to the other; outside, samples/s are those of the nearest. Without a precision
// it is that of the pair's first row. Requires names_device(device). Fails with invalid argument for a pair, or a
// precision of it, that is not in the table, listing those that are.
Result<TypicalStep> typical_step(std::string_view device, std::string_view model, int batch_size);

}  // namespace syncopate::prediction
