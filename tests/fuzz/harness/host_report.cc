// What a host prints when it is asked what it is.
#include "experiments/cluster/host/host_report.h"

#include "tests/fuzz/harness.h"

namespace syncopate::fuzz {
namespace {

const Harness host_report("host_report", [](Bytes input) {
  const Result<experiments::HostReport> report = experiments::parse_host_report(text_of(input));
  if (report.ok())
    require(experiments::parse_host_report(experiments::to_json_line(*report)).ok(), "a report is read back");
});

}  // namespace
}  // namespace syncopate::fuzz
