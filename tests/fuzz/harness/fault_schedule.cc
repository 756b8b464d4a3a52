// --fault. What is taken, and written out, is taken again as the same.
#include "experiments/config/fault_schedule.h"

#include "tests/fuzz/harness.h"

namespace syncopate::fuzz {
namespace {

const Harness fault_schedule("fault_schedule", [](Bytes input) {
  const Result<experiments::FaultSchedule> parsed = experiments::FaultSchedule::parse(text_of(input));
  if (!parsed.ok()) return;
  const Result<experiments::FaultSchedule> again = experiments::FaultSchedule::parse(parsed->to_string());
  require(again.ok() && again->to_string() == parsed->to_string(), "a schedule is read back as it was written");
});

}  // namespace
}  // namespace syncopate::fuzz
