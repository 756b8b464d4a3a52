#include "worker/data/dataset_names.h"

#include <algorithm>

namespace syncopate::worker {

const std::vector<DatasetTraits>& dataset_traits() {
  using enum SampleKind;
  static const std::vector<DatasetTraits> table = {
      {.name = "digits", .usage = "digits, digits:TRAIN-TEST", .kind = kInk, .is_generated = true, .is_drawn = true},
      {.name = "mnist", .usage = "mnist", .kind = kInk},
      {.name = "fashion-mnist", .usage = "fashion-mnist", .kind = kInk},
      {.name = "cifar10", .usage = "cifar10, cifar10:plain", .kind = kPhotograph},
      {.name = "patterns",
       .usage = "patterns, patterns:TRAIN-TEST-SIDE-CLASSES",
       .kind = kPhotograph,
       .is_generated = true,
       .is_drawn = true},
      {.name = "text", .usage = "text, text:CONTEXT", .kind = kText},
      {.name = "grammar",
       .usage = "grammar, grammar:TRAIN-TEST-CONTEXT-VOCABULARY",
       .kind = kText,
       .is_generated = true,
       .is_drawn = true},
      {.name = "ratings", .usage = "ratings", .kind = kTable, .is_drawn = true},
      {.name = "clicks", .usage = "clicks:ROWS", .kind = kTable, .sizes_tables = true},
      {.name = "zipf-ratings",
       .usage = "zipf-ratings:TRAIN-TEST-ROWS",
       .kind = kTable,
       .is_generated = true,
       .is_drawn = true,
       .sizes_tables = true},
      {.name = "zipf-clicks",
       .usage = "zipf-clicks:TRAIN-TEST-ROWS",
       .kind = kTable,
       .is_generated = true,
       .is_drawn = true,
       .sizes_tables = true},
  };
  return table;
}

const DatasetTraits* find_dataset(std::string_view name) {
  const auto found = std::ranges::find(dataset_traits(), name, &DatasetTraits::name);
  return found == dataset_traits().end() ? nullptr : &*found;
}

std::vector<std::string> dataset_names(const std::function<bool(const DatasetTraits&)>& test) {
  std::vector<std::string> names;
  for (const DatasetTraits& traits : dataset_traits()) {
    if (test(traits)) names.emplace_back(traits.name);
  }
  return names;
}

}  // namespace syncopate::worker
