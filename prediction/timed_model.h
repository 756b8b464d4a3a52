// A model's step without any exchange, tensor by tensor. Pure.
#pragma once

#include <vector>

#include "prediction/model_profile.h"

namespace syncopate::prediction {

// In the order of the profile's tensors.
struct TimedModel {
  std::vector<double> bytes;     // as float32
  std::vector<bool> is_vector;   // of one dimension: a bias or a norm, of the layer of the tensor before
  std::vector<double> forward;   // seconds
  std::vector<double> backward;  // seconds
};

// Divides the whole step, `compute` seconds, above 0. A profile with times has it in their proportion. Of any other a
// third is forward and two thirds are backward, since backward does each product of the forward pass twice; tensors
// share it in proportion to their FLOPs, or alike where there are none.
TimedModel timed_model(const ModelProfile& profile, double compute);

}  // namespace syncopate::prediction
