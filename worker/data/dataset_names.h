// The data sets that have a name: a row of a table each. Help, what an option needs, refusals and the names that
// open_dataset accepts follow from it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate::worker {

enum class SampleKind {
  kInk,         // images of ink on paper
  kPhotograph,  // images of colour
  kText,
  kTable,  // what a recommender learns from
};

struct DatasetTraits {
  std::string_view name;
  // What open_dataset accepts, with sizes that stand behind the name: "digits, digits:TRAIN-TEST".
  std::string_view usage;
  SampleKind kind = SampleKind::kInk;
  bool is_generated = false;  // with as many samples as one wants
  bool is_drawn = false;      // a seed decides something of its samples
  bool sizes_tables = false;  // its tables are as large as one wants
};

inline bool has_images(const DatasetTraits& traits) {
  return traits.kind == SampleKind::kInk || traits.kind == SampleKind::kPhotograph;
}

const std::vector<DatasetTraits>& dataset_traits();

// Returns the row of a name; null if there is none, as for a path.
const DatasetTraits* find_dataset(std::string_view name);

// Returns the names of those for which `test` is true, in the table's order.
std::vector<std::string> dataset_names(const std::function<bool(const DatasetTraits&)>& test);

}  // namespace syncopate::worker
