// Charts of advice: what each way takes, and, of several sizes, which mode is ahead where. Pure.
#pragma once

#include <vector>

#include "experiments/lab/predict/advised_size.h"
#include "experiments/lab/report/chart.h"

namespace syncopate::experiments {

std::vector<AnyChart> advice_charts(const AdviseRequest& request, const std::vector<AdvisedSize>& sizes);

}  // namespace syncopate::experiments
