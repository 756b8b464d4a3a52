// --straggler. What is taken, and written out, is taken again as the same, and slows nobody by less than nothing.
#include "worker/stragglers.h"

#include "tests/fuzz/harness.h"

namespace syncopate::fuzz {
namespace {

const Harness stragglers("stragglers", [](Bytes input) {
  const Result<worker::Stragglers> parsed = worker::Stragglers::parse(text_of(input));
  if (!parsed.ok()) return;
  const Result<worker::Stragglers> again = worker::Stragglers::parse(parsed->to_string());
  require(again.ok() && again->to_string() == parsed->to_string(), "stragglers are read back as they were written");
  (void)parsed->check(4, std::chrono::seconds(15));
  const worker::Slowdown slowdown = parsed->at(1, 0, 7);
  const Duration delay = slowdown.delay(std::chrono::milliseconds(1), std::chrono::seconds(15));
  require(delay >= Duration::zero() && delay <= std::chrono::seconds(15),
          "a delay lies between nothing and the longest");
});

}  // namespace
}  // namespace syncopate::fuzz
