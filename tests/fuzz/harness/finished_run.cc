// The files of a finished run that compare and why read: the first byte says which.
#include <cmath>

#include "experiments/lab/report/evals_csv.h"
#include "experiments/lab/report/summary_reading.h"
#include "experiments/lab/why/causes.h"
#include "tests/fuzz/harness.h"

namespace syncopate::fuzz {
namespace {

// Any steps, of a run with links and servers of which all is known, can be explained.
void explain(std::string_view steps_csv) {
  const auto rows = experiments::read_steps(steps_csv, 0);
  if (!rows.ok()) return;
  experiments::RunPace pace{.what = "ps sync", .workers = 3, .batch_size = 16, .warmup_steps = 1};
  pace.quorum = 3;
  pace.servers = 2;
  pace.link = experiments::PacedLink{.bytes_per_second = 1e6, .delay_ms = 1};
  pace.of_servers[0] = {.pushes = 4, .busy = from_seconds(0.5), .bytes_in = 1 << 20, .bytes_out = 1 << 20};
  pace.of_servers[1] = {.pushes = 4, .busy = from_seconds(0.1), .bytes_in = 1 << 10, .bytes_out = 1 << 10};
  const auto waterfall = experiments::make_waterfall(*rows, pace);
  if (!waterfall) return;
  require(waterfall->parts.size() == std::size(experiments::kPartKinds), "each part once");
  for (const experiments::Part& part : waterfall->parts) (void)evidence_of(part.kind, *waterfall, pace);
  (void)causes_of(*waterfall, pace);
}

const Harness finished_run("finished_run", [](Bytes input) {
  if (input.empty()) return;
  const std::string_view text = text_of(input.subspan(1));
  if (input[0] % 4 == 0) {
    const auto summary = experiments::read_summary(text);
    if (summary.ok()) require(summary->reports.size() <= 100, "no more repeats than can be asked for");
  } else if (input[0] % 4 == 1) {
    const auto evals = experiments::read_evals(text, 1);
    if (evals.ok()) require(!evals->empty() && evals->size() <= 100, "as many repeats as there are, and can be");
  } else if (input[0] % 4 == 2) {
    (void)experiments::read_environment(text);
  } else {
    explain(text);
  }
});

}  // namespace
}  // namespace syncopate::fuzz
