// The files of a finished run that compare reads: the first byte says which.
#include <cmath>

#include "experiments/lab/report/summary_reading.h"
#include "tests/fuzz/harness.h"

namespace syncopate::fuzz {
namespace {

const Harness finished_run("finished_run", [](Bytes input) {
  if (input.empty()) return;
  const std::string_view text = text_of(input.subspan(1));
  if (input[0] % 3 == 0) {
    const auto summary = experiments::read_summary(text);
    if (summary.ok()) require(summary->reports.size() <= 100, "no more repeats than can be asked for");
  } else if (input[0] % 3 == 1) {
    const auto evals = experiments::read_evals(text, 1);
    if (evals.ok()) require(!evals->empty() && evals->size() <= 100, "as many repeats as there are, and can be");
  } else {
    (void)experiments::read_environment(text);
  }
});

}  // namespace
}  // namespace syncopate::fuzz
