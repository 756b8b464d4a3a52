// What a model takes samples for, as a CSV file with a row a sample. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace syncopate::experiments {

// The first line: "index,label,predicted,probability".
std::string predictions_header();

// Returns the rows of samples `first` and following, which have these labels and, one after the other, logits: the
// class with the largest logit, the first of several, and its probability under softmax.
std::string prediction_rows(std::int64_t first, std::span<const int> labels, std::span<const float> logits);

}  // namespace syncopate::experiments
