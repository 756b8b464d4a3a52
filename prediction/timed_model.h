// A model's step without any exchange, tensor by tensor. Pure.
#pragma once

#include <vector>

#include "prediction/model_profile.h"

namespace syncopate::prediction {

// In the order of the profile's tensors. A third of a step is forward, two thirds are backward, since backward does
// each product of the forward pass twice; tensors share it in proportion to their FLOPs.
struct TimedModel {
  std::vector<double> bytes;    // as float32
  std::vector<double> forward;  // seconds; backward takes twice as long
};

// `compute` is the whole step in seconds, above 0. A profile without FLOPs has its work in equal parts.
TimedModel timed_model(const ModelProfile& profile, double compute);

}  // namespace syncopate::prediction
