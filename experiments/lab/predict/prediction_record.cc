#include "experiments/lab/predict/prediction_record.h"

#include <fmt/format.h>

#include <sstream>

#include "experiments/lab/report/html_text.h"

namespace syncopate::experiments {

nlohmann::ordered_json job_json(const ScaledJob& job) {
  nlohmann::ordered_json json = {{"model", job.profile.model},
                                 {"parameters", job.profile.parameters()},
                                 {"batch_size", job.batch_size},
                                 {"step_ms", job.step_seconds * 1e3},
                                 {"device", nullptr},
                                 {"device_basis", nullptr},
                                 {"shape", job.link.to_string()},
                                 {"workers_per_host", job.workers_per_host},
                                 {"inside", job.inside.to_string()},
                                 {"prices", nullptr}};
  if (!job.device.empty()) {
    json["device"] = job.device;
    json["device_basis"] = job.basis;
  }
  if (job.prices) json["prices"] = {{"worker", job.prices->worker}, {"server", job.prices->server}};
  return json;
}

std::string opening_html(const std::string& title, const std::string& command) {
  std::istringstream lines(title + command);  // the title ends with a newline
  std::string html;
  for (std::string line; std::getline(lines, line);) html += fmt::format("<p>{}</p>\n", html_text(line));
  return html;
}

void add_figures(const PlanFigures& figures, FlatRow& row) {
  row["hosts"] = figures.hosts;
  row["step_ms"] = figures.step_seconds * 1e3;
  row["samples_per_second"] = figures.samples_per_second;
  row["efficiency"] = figures.efficiency;
  row["cost_per_million_samples"] = nullptr;
  if (figures.cost_per_million_samples) row["cost_per_million_samples"] = *figures.cost_per_million_samples;
}

}  // namespace syncopate::experiments
