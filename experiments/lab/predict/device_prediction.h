// `run_experiment predict --device=NAME|FILE`: the least time of a training step on a device, from the work of the
// model's step and the device's peak rates (prediction/roofline.h).
#pragma once

#include <string>
#include <vector>

#include "common/status.h"
#include "experiments/config/resolved_run.h"
#include "experiments/lab/run/step_work.h"
#include "prediction/device_rates.h"

namespace syncopate::experiments {

struct DevicePrediction {
  ResolvedRun config;  // of one worker alone
  prediction::DeviceRates device;
  prediction::PeakRates peak;  // in the run's precision
  bool is_captured = true;     // the step is one CUDA graph, so that launches cost the host nothing that counts
  StepWork work;

  // What all passes take one after the other, the update with them.
  prediction::LeastTime step() const;
  // The host's time to launch what is not captured.
  double launch_seconds() const;
  // No less than either.
  double least_seconds() const;
};

// Whether words behind `predict` ask for it.
bool asks_for_a_device(const std::vector<std::string>& options);

// Reads --device, --model and --batch-size, which must be there, and what else decides the model, its data and its
// update. A gpt's data are grammar and resnet50's are patterns, unless --dataset is given. Fails with invalid argument
// and one line that says what is wrong and what would be right. Pure, but for files that --device and --dataset name.
Result<DevicePrediction> parse_device_prediction(const std::vector<std::string>& options);

// Returns what is printed, in lines of at most 80 characters.
std::string device_prediction_text(const DevicePrediction& prediction);

}  // namespace syncopate::experiments
