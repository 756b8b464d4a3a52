// Clicks as Criteo's files have them. What is opened can be read throughout.
#include <algorithm>
#include <cmath>

#include "tests/fuzz/harness.h"
#include "tests/fuzz/scratch_file.h"
#include "worker/data/clicks_reader.h"

namespace syncopate::fuzz {
namespace {

constexpr std::int64_t kRows = 1000;

void read_all(const worker::Dataset& data) {
  std::vector<float> values(worker::kClickNumbers);
  std::vector<int> ids(worker::kClickCategories), labels(1);
  for (std::int64_t i = 0; i < data.size(); ++i) {
    data.read(i, 0, {.values = values, .ids = ids, .labels = labels});
    require(std::ranges::all_of(values, [](float value) { return std::isfinite(value) && value >= 0; }),
            "values are finite");
    require(std::ranges::all_of(ids, [](int id) { return id >= 0 && id < kRows; }), "ids are rows");
    require(labels.front() == 0 || labels.front() == 1, "a label is 0 or 1");
  }
}

const Harness clicks("clicks", [](Bytes input) {
  const Result<worker::DatasetPair> data = worker::open_clicks(scratch_file("clicks.txt", input), kRows);
  if (!data.ok()) return;
  read_all(*data->train);
  read_all(*data->test);
});

}  // namespace
}  // namespace syncopate::fuzz
