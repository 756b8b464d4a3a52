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
};

struct ModelProfile {
  std::string model;
  std::string source;
  std::vector<std::int64_t> input;  // the shape of one sample
  double other_forward_flops = 0;
  std::vector<TensorProfile> tensors;

  std::int64_t parameters() const;
  double forward_flops() const;  // of one sample, with those that need no tensor
  double bytes() const;          // as float32
};

// Fails with invalid argument, naming the field and its value, for what is not such a file: a missing field, one of
// another kind, a number out of range, a name that stands twice, more than 2^16 tensors, more than 16 MiB of text.
Result<ModelProfile> read_profile(std::string_view text);

// The names of the profiles that are built in, sorted.
std::vector<std::string> profile_names();

// Returns a profile that is built in. Fails with not found for an unknown name, listing all.
Result<ModelProfile> built_in_profile(std::string_view name);

}  // namespace syncopate::prediction
