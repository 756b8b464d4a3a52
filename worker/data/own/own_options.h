// OwnOptions: what a person decides about data of their own, besides the files' names.
#pragma once

#include <string>

namespace syncopate::worker {

// What is learnt of the target. kAuto: a class of texts and of few whole numbers, else a number.
enum class Task { kAuto, kClasses, kRegression };
// How values become what a model sees. kStandard: less the mean, over the standard deviation; kMinMax: from 0 to 1;
// both by channel of an image or by feature, over the training part alone.
enum class Normalisation { kStandard, kMinMax, kNone };

struct OwnOptions {
  std::string target = {};     // a column, an array, or a file; empty: as the format has it
  std::string ignore = {};     // columns of a table that are not read, between commas
  std::string test_data = {};  // where the test samples are; empty: a part of the others
  double test_fraction = 0.2;
  Task task = Task::kAuto;
  Normalisation normalisation = Normalisation::kStandard;
  int image_size = 0;  // of both sides, to which images of a folder are scaled; 0: as they are, all of one size

  bool operator==(const OwnOptions&) const = default;
};

}  // namespace syncopate::worker
