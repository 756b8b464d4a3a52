// SavedModel: weights that a run has left, as a file or in a checkpoint, and what is known of the model and the data
// that they belong to.
#pragma once

#include <string>

#include "common/param_layout.h"
#include "common/status.h"
#include "experiments/checkpoint/safetensors.h"
#include "experiments/cluster/control/weights_snapshot.h"
#include "experiments/config/options/given_options.h"

namespace syncopate::experiments {

struct SavedModel {
  std::string path;        // of the file
  std::string checkpoint;  // the folder of the checkpoint that the file is of; empty: of none
  GivenOptions options;    // those of OptionSpec::of_model that the file, its run's config.toml or the checkpoint names
  SafetensorsFile file;
};

// Finds the weights that `path` names: a run's results, whose model.safetensors is meant; a checkpoint of a run, or a
// file in it; or any file of weights. What the file says of itself wins over the config.toml of its run. Fails with
// invalid argument, saying what there is instead, if `path` has no weights; with not found or data loss for a file that
// cannot be read.
Result<SavedModel> open_saved_model(const std::string& path);

// Returns the weights as they are evaluated, laid out as snapshot_layout says; of a checkpoint the mean of its workers'
// local states. Fails with invalid argument, naming the tensor and both shapes, if they are of another model than these
// layouts', and with data loss if a checkpoint is damaged.
Result<WeightsSnapshot> read_weights(const SavedModel& saved, const ParamLayout& layout,
                                     const ParamLayout& local_layout);

}  // namespace syncopate::experiments
