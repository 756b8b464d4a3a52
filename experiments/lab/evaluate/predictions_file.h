// What a model takes samples for, as a CSV file with a row a sample. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "worker/data/dataset.h"

namespace syncopate::experiments {

// The first line: "index,label,predicted,probability"; of regression "index,target,predicted".
std::string predictions_header(bool regression = false);

// Returns the rows of samples `first` and following, which have these labels and, one after the other, logits: the
// class with the largest logit, the first of several, and its probability under softmax. Classes stand by their names,
// if they have any, else by their numbers.
std::string prediction_rows(std::int64_t first, std::span<const int> labels, std::span<const float> logits,
                            const std::vector<std::string>& names = {});

// Returns the same of regression, in the unit that the person's file has.
std::string regression_rows(std::int64_t first, std::span<const float> targets, std::span<const float> outputs,
                            const worker::TargetScale& scale);

}  // namespace syncopate::experiments
