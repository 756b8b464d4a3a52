// Samples as values, and small files of clicks, for tests.
#pragma once

#include <string>
#include <vector>

#include "tests/worker/data/scratch_folder.h"
#include "worker/data/dataset.h"

namespace syncopate::worker {

// Returns the file's path.
inline std::string write_text(const ScratchFolder& folder, const std::string& name, const std::string& text) {
  return folder.write(name, Bytes(text.begin(), text.end()));
}

struct Sample {
  std::vector<float> values;
  std::vector<int> ids;
  std::vector<int> labels;
  bool operator==(const Sample&) const = default;
};

inline Sample sample_of(const Dataset& data, std::int64_t index, std::int64_t epoch = 0) {
  const SampleForm& form = data.form();
  Sample sample{std::vector<float>(static_cast<std::size_t>(form.values())),
                std::vector<int>(static_cast<std::size_t>(form.id_columns())),
                std::vector<int>(static_cast<std::size_t>(form.labels))};
  data.read(index, epoch, {.values = sample.values, .ids = sample.ids, .labels = sample.labels});
  return sample;
}

// A line of clicks: the label, the 13 numbers and the 26 categories, as far as they are not empty.
inline std::string click_line(const std::string& label, const std::string& number, const std::string& category) {
  std::string line = label;
  for (int i = 0; i < 13; ++i) line += "\t" + number;
  for (int i = 0; i < 26; ++i) line += "\t" + category;
  return line + "\n";
}

}  // namespace syncopate::worker
