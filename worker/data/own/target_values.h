// TargetValues: what a column of texts or numbers is to a model: classes, or numbers to predict. Pure.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"
#include "worker/data/own/own_samples.h"

namespace syncopate::worker {

// The most different whole numbers that are taken for classes unless --task says what they are.
inline constexpr std::size_t kMostAutoClasses = 100;
inline constexpr std::size_t kMostClasses = 65536;

struct TargetValues {
  bool regression = false;
  std::vector<int> labels = {};         // of classes
  std::vector<std::string> names = {};  // the classes, in the order of their numbers
  std::vector<double> numbers = {};     // of regression
};

// Returns "iris.csv: line 7: column 'species'", or "y.npy: sample 6".
std::string place_of(const TargetColumn& column, std::int64_t sample);

// Takes the columns of all parts together. Texts, and whole numbers of kMostAutoClasses different values at most, are
// classes, numbered from 0 in the order of the texts or numbers; other numbers are to be predicted. `task` decides
// otherwise. kInvalidArgument: more whole numbers, or what `task` cannot mean. kDataLoss: a number is not finite, or a
// text stands among numbers.
Result<std::vector<TargetValues>> target_values(const std::vector<const TargetColumn*>& columns, Task task);

}  // namespace syncopate::worker
