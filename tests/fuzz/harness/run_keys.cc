// A run's keys, as they come through a pipe. What is taken is what goes out again.
#include "common/transport/run_keys.h"

#include "tests/fuzz/harness.h"

namespace syncopate::fuzz {
namespace {

const Harness run_keys("run_keys", [](Bytes input) {
  const Result<RunKeys> keys = RunKeys::parse(text_of(input));
  if (keys.ok()) require(keys->to_text().view() == text_of(input), "keys that were taken are the same text again");
});

}  // namespace
}  // namespace syncopate::fuzz
