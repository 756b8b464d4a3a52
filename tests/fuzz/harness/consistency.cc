// --consistency, --delay-compensation and --sharding.
#include "ps/policy/consistency.h"

#include "ps/policy/sharding.h"
#include "ps/policy/staleness.h"
#include "tests/fuzz/harness.h"

namespace syncopate::fuzz {
namespace {

const Harness consistency("consistency", [](Bytes input) {
  const std::string_view text = text_of(input);
  (void)ps::parse_sharding_policy(text);
  const Result<ps::DelayCompensation> compensation = ps::DelayCompensation::parse(text);
  if (compensation.ok()) {
    const Result<ps::DelayCompensation> again = ps::DelayCompensation::parse(compensation->to_string());
    require(again.ok() && *again == *compensation, "a compensation is read back as it was written");
  }
  const Result<ps::Consistency> parsed = ps::Consistency::parse(text);
  if (!parsed.ok()) return;
  const Result<ps::Consistency> again = ps::Consistency::parse(parsed->to_string());
  require(again.ok() && again->to_string() == parsed->to_string(), "a consistency is read back as it was written");
  require(parsed->period() >= 1, "a worker makes at least one step before it pushes");
});

}  // namespace
}  // namespace syncopate::fuzz
