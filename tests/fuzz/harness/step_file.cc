// A file of steps, as it grows: what a program of a person's own tells.
#include "common/step_file.h"

#include <fstream>

#include "tests/fuzz/harness.h"
#include "tests/fuzz/scratch_file.h"

namespace syncopate::fuzz {
namespace {

bool can_be(std::int64_t number) { return number >= -1 && number <= kMostToldNumber; }

const Harness step_file("step_file", [](Bytes input) {
  // The second half comes after the first was read.
  const std::string path = scratch_file("steps", input.first(input.size() / 2));
  StepFileReader reader(path);
  Result<std::vector<StepFileEntry>> entries = reader.read();
  const Bytes rest = input.subspan(input.size() / 2);
  std::ofstream(path, std::ios::app).write(reinterpret_cast<const char*>(rest.data()), static_cast<long>(rest.size()));
  if (entries.ok()) entries = reader.read();
  if (!entries.ok()) {
    require(entries.status().code() == Code::kDataLoss, "what is no file of steps is lost data");
    return;
  }
  for (const StepFileEntry& entry : *entries) {
    const auto* step = std::get_if<StepRecord>(&entry);
    if (step != nullptr) require(can_be(step->step) && can_be(step->total.count()), "times can be calculated with");
  }
});

}  // namespace
}  // namespace syncopate::fuzz
