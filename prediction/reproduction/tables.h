// The tables that reproduction.h offers, one function each, and what several of them need.
#pragma once

#include <functional>
#include <string>

#include "prediction/model_profile.h"
#include "prediction/reproduction/reproduction.h"
#include "prediction/step_prediction.h"

namespace syncopate::prediction {

Reproduction ring_form();
Reproduction byteps_forms();
Reproduction nccl_links();
Reproduction piz_daint();
Reproduction mxnet_p2();
Reproduction tensorflow_page();
Reproduction dlperf_bert();
Reproduction horovod_images();
Reproduction fitted_sizes();

// A built-in profile, which must exist.
ModelProfile profile_named(const std::string& name);

// The step of a plan that cannot fail.
double step_seconds(const ModelProfile& profile, double compute, const Network& network, const ExchangePlan& plan);

// Returns the positive x between `low` and `high` at which `falling(x)`, which falls as x grows, comes to `target`; the
// nearer end if it does not.
double solve_falling(const std::function<double(double)>& falling, double low, double high, double target);

// The bytes a second of a link at which `step_of` comes to `seconds`.
double solve_link(const std::function<double(double)>& step_of, double seconds);

}  // namespace syncopate::prediction
