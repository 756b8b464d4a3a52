#include "experiments/lab/predict/advise_text.h"

#include <algorithm>

#include "experiments/lab/predict/advice.h"
#include "experiments/lab/predict/plan_name.h"
#include "experiments/lab/report/text_table.h"
#include "prediction/advice/search.h"

namespace syncopate::experiments {
namespace {

constexpr std::size_t kMostRowsOfAdvice = 8;

std::string table_of_best(const ScaledJob& job, int workers, const std::vector<prediction::Candidate>& best) {
  std::vector<std::vector<std::string>> rows = {{"the best of each kind"}};
  const std::vector<std::string> columns = plan_columns(job);
  rows.front().insert(rows.front().end(), columns.begin(), columns.end());
  for (const prediction::Candidate& candidate : best) {
    if (rows.size() > kMostRowsOfAdvice) break;
    rows.push_back({way_name(candidate.way, job.network(workers).hosts())});
    const std::vector<std::string> cells = plan_cells(job, workers, candidate.way.plan, candidate.prediction.step);
    rows.back().insert(rows.back().end(), cells.begin(), cells.end());
  }
  return text_table(rows);
}

}  // namespace

Result<std::string> advise_text(const AdviseRequest& request) {
  const ScaledJob& job = request.job;
  const prediction::AdvisedJob advised = request.advised_job();
  const KnownErrors errors = known_errors();
  std::string text = title_of(job);
  for (const int workers : job.workers) {
    SYNCOPATE_ASSIGN_OR_RETURN(const prediction::SearchResult result,
                               search(advised, job.network(workers), request.space(workers)));
    text += fmt::format("\n{} worker{}\n", workers, workers == 1 ? "" : "s");
    if (!result.best.empty()) text += table_of_best(job, workers, result.best);
    for (const std::string& sentence : advice(request, advised, workers, result, errors)) {
      text += fmt::format("- {}\n", sentence);
    }
  }
  return text + "\n" + how_sure(errors);
}

}  // namespace syncopate::experiments
