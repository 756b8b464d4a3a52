// What a prediction has to know of a model: its tensors and how much work each of them makes. Pure.
//
// A profile is a JSON file:
//
//   {"model": "toy", "source": "where the figures come from", "input": [3, 224, 224], "other_forward_flops": 0,
//    "tensors": [{"name": "conv0/w", "shape": [3, 3, 3, 64], "forward_flops": 173408256}, ...]}
//
// Tensors stand in the order in which the forward pass uses them, which is taken as the order of their creation, too;
// gradients become ready in reverse. forward_flops are those of one sample, two for each multiplication and addition,
// booked on the weight that they need. other_forward_flops need no tensor of the model, as attention's products do.
//
// A profile that was measured also has the times of one worker's step, of so many samples: "batch_size": 32 beside
// "model", and "forward_seconds" and "backward_seconds" in each tensor, 0 to 1000, not all of them 0.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"

namespace syncopate::prediction {

struct TensorProfile {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t parameters = 0;  // the product of its shape, 1 to 2^40
  double forward_flops = 0;     // of one sample
  double forward_seconds = 0;   // of a batch, if the profile has times; else 0
  double backward_seconds = 0;
};

struct ModelProfile {
  std::string model;
  std::string source;
  std::vector<std::int64_t> input;  // the shape of one sample
  double other_forward_flops = 0;
  int batch_size = 0;  // that the times are of; 0: it has no times
  std::vector<TensorProfile> tensors;

  std::int64_t parameters() const;
  double forward_flops() const;  // of one sample, with those that need no tensor
  double bytes() const;          // as float32
  bool has_times() const { return batch_size > 0; }
  double step_seconds() const;  // forward and backward, as measured; 0 without times
};

// Fails with invalid argument, naming the field and its value, for what is not such a file: a missing field, one of
// another kind, a number out of range, a name that stands twice, more than 2^16 tensors, more than 16 MiB of text.
Result<ModelProfile> read_profile(std::string_view text);

// Returns the file that read_profile() reads, which ends with a line feed.
std::string to_json(const ModelProfile& profile);

// The names of the profiles that are built in, sorted.
std::vector<std::string> profile_names();

// Returns a profile that is built in. Fails with not found for an unknown name, listing all.
Result<ModelProfile> built_in_profile(std::string_view name);

}  // namespace syncopate::prediction
