// compare's --vary and --modes.
#include "experiments/config/variation.h"

#include "experiments/config/comparison.h"
#include "tests/fuzz/harness.h"
#include "tests/fuzz/input.h"

namespace syncopate::fuzz {
namespace {

const Harness variation("variation", [](Bytes bytes) {
  Input input(bytes);
  const std::string modes = string_of(input.bytes(input.byte()));
  const Result<experiments::Variation> varied = experiments::parse_variation(text_of(input.rest()));
  if (!varied.ok()) return;
  require(!varied->values.empty(), "something is varied");
  constexpr std::size_t kMostValues = 8;  // more would only take time
  if (varied->values.size() > kMostValues || varied->option == "hostfile") return;
  const Result<experiments::VariedRuns> runs = experiments::varied_runs({}, modes, std::span(&*varied, 1));
  if (runs.ok()) require(!runs->runs.empty(), "a comparison has runs");
});

}  // namespace
}  // namespace syncopate::fuzz
