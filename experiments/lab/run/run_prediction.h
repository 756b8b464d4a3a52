// What a closed form makes of a run's own configuration, to be held against its measurement. The reverse of
// simulated_step.h, which makes a run of a plan.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/config/resolved_run.h"
#include "experiments/lab/run/parts_prediction.h"
#include "experiments/lab/run/pipeline_prediction.h"
#include "prediction/model_profile.h"
#include "prediction/step_prediction.h"

namespace syncopate::experiments {

// What the forms need to know of a run.
struct FormOfRun {
  prediction::Network network;
  prediction::ExchangePlan plan;
  // The closed form is of the step of asynchronous workers, which is a bound: they are at most as fast.
  bool is_asynchronous = false;
};

// Returns none where no form describes the run: its links are not known (--shape gives them), or are shared by the
// processes of a host or a rack; its exchange is none of those of step_prediction.h; its model is known to a program of
// the person's own alone, or divided among workers; or it has stragglers, faults, compression or row-sparse tables, of
// which the forms know nothing. Pure.
std::optional<FormOfRun> form_of(const ResolvedRun& config);

// Returns the run's model as a profile; one that is none shares its step among its tensors by their sizes. None if the
// model cannot be read, or has tables. Pure.
std::optional<prediction::ModelProfile> profile_like(const ResolvedRun& config);

// Returns for how many seconds a link carries the activations of a microbatch to the next chunk of a pipeline's chain,
// by chunk; empty where the run is no pipeline, its links are not known, or are shared. Pure.
std::vector<double> seconds_to_next(const ResolvedRun& config);

// Returns stages_text(), if the run is a pipeline whose model can be read, and else nothing. Pure.
std::string stages_text(const ResolvedRun& config);

// Returns the predicted samples/s of all workers, whose step without any exchange takes `compute_seconds`; none where
// there is no form, or the model cannot be read. A model that is no profile shares its step among its tensors by their
// sizes, and what the collective chooses by size is the fastest of the forms. None for parts of layers: a step there is
// of other computing than a worker's with whole layers.
std::optional<double> predicted_rate(const ResolvedRun& config, double compute_seconds);

// Return what predict_pipeline() and predict_parts() do; none where there is no form. They require what those do.
std::optional<PipelinePrediction> predicted_pipeline(const ResolvedRun& config, double compute_seconds);
std::optional<PartsPrediction> predicted_parts(const ResolvedRun& config, double compute_seconds);

}  // namespace syncopate::experiments
