#include "experiments/lab/predict/predict_text.h"

#include <fmt/format.h>

#include "common/text/format.h"
#include "experiments/lab/predict/plan_name.h"
#include "experiments/lab/predict/simulated_step.h"
#include "experiments/lab/report/text_table.h"

namespace syncopate::experiments {
namespace {

// The simulated step in ms, and the form's step beside it, as "+3.1 %": longer than simulated.
std::vector<std::string> simulated_cells(const PredictedRow& row) {
  if (!row.simulated) return {"-", "-"};
  return {format_ms(*row.simulated * 1e3), fmt::format("{:+.1f} %", 100 * (row.step / *row.simulated - 1))};
}

// What a link has under way when it is full, beside what one connection may have.
std::string about_window(const ScaledJob& job) {
  const auto window = static_cast<double>(simulation::NetworkOptions().window_bytes);
  const prediction::Network network = job.network(2);
  const double under_way = 2 * network.alpha * network.bytes_per_second;
  if (under_way <= window) return "";
  return fmt::format(
      "\nbeware: a full link has {} under way, more than a connection's window of {}, of which the forms "
      "know nothing: steps may take twice as long.\n",
      format_bytes(under_way), format_bytes(window));
}

std::string about_simulation(simulation::NetworkModel network) {
  return fmt::format(
      "\nsimulated: ms of a step of this project's own strategies in virtual time, network {}; form: how much longer "
      "the closed form takes a step to be. -: one worker, more than {}, or nothing of ours is like it.\n",
      name_of(network), kMostWorkersBesideAPrediction);
}

}  // namespace

std::vector<std::vector<std::string>> predict_rows(const PredictRequest& request,
                                                   const std::vector<PredictedRow>& rows) {
  const ScaledJob& job = request.job;
  std::vector<std::vector<std::string>> table = {{"exchange", "workers"}};
  const auto add = [&](const std::vector<std::string>& cells) {
    table.back().insert(table.back().end(), cells.begin(), cells.end());
  };
  add(plan_columns(job));
  if (request.simulate) add({"simulated", "form"});
  for (const PredictedRow& row : rows) {
    table.push_back({plan_name(row.plan, job.network(row.workers).hosts()), std::to_string(row.workers)});
    add(plan_cells(job, row.workers, row.plan, row.step));
    if (request.simulate) add(simulated_cells(row));
  }
  return table;
}

std::string predict_text(const PredictRequest& request, const std::vector<PredictedRow>& rows) {
  const std::string table = text_table(predict_rows(request, rows));
  if (!request.simulate) {
    return title_of(request.job) + "\n" + table + about_window(request.job) +
           "\nThe form of a tree sends each bucket whole; this project's tree cuts it (a run's --segment-bytes). "
           "--simulate=frames puts a step of this project's own strategies beside each form; advise goes by these.\n";
  }
  return title_of(request.job, "Closed forms, and steps in virtual time beside them") + "\n" + table +
         about_simulation(*request.simulate);
}

}  // namespace syncopate::experiments
