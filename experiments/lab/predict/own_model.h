// A model that can be trained here, by the options that name it and its samples: its layers and activations are known.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"
#include "experiments/config/options/given_options.h"
#include "experiments/config/resolved_run.h"
#include "prediction/model_profile.h"

namespace syncopate::experiments {

// Gives a model that does not learn what is usual the data that it learns, unless data is given.
void set_usual_data(GivenOptions& given);

// Whether --model names a model that can be trained here. A name that a profile has, too, is the profile's, unless
// --dataset is given.
bool names_own_model(const GivenOptions& given);

struct OwnModel {
  std::string name;
  prediction::ModelProfile profile;  // its tensors, with the FLOPs of the whole divided among them by their sizes
  std::vector<std::string> words;    // the options of a run that trains it: {"--model=gpt:4-8-256", ...}
  bool has_generated_data = false;
};

// Takes the options of the model and its data out of `given`. Requires names_own_model(given). Fails with invalid
// argument as a run of it would, and for a model with row-sparse tables.
Result<OwnModel> take_own_model(GivenOptions& given);

}  // namespace syncopate::experiments
