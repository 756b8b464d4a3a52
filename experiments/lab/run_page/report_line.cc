#include "experiments/lab/run_page/report_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/os/whole_file.h"
#include "experiments/config/commands.h"
#include "experiments/lab/compare/finished_runs.h"
#include "experiments/lab/compare/kept_comparison.h"
#include "experiments/lab/report/comparison_files.h"
#include "experiments/lab/run_page/run_page.h"

namespace syncopate::experiments {
namespace {

Result<std::string> report_of_run(const std::string& folder, const std::string& output) {
  SYNCOPATE_ASSIGN_OR_RETURN(const ReportedRun run, read_reported_run(folder));
  SYNCOPATE_RETURN_IF_ERROR(write_whole_file(output, run_html(run)));
  return paragraph_of(run.explained) + fmt::format("\n\npage in {}\n", output);
}

Result<std::string> report_of_comparison(const std::string& folder, const std::string& output) {
  SYNCOPATE_ASSIGN_OR_RETURN(const ComparisonReport report, read_kept_comparison(folder));
  SYNCOPATE_RETURN_IF_ERROR(write_whole_file(output, comparison_html(report)));
  return fmt::format("page in {}\n", output);
}

}  // namespace

Result<std::string> report_answer(const std::vector<std::string>& words) {
  SYNCOPATE_ASSIGN_OR_RETURN(const auto read, command_words(words));
  const auto& [folders, given] = read;
  const auto output = given.find("output");
  if (folders.empty()) {
    return Status::invalid_argument("report: needs the folder of a finished run, as results/NAME, or several of them");
  }
  if (folders.size() == 1) {
    const bool is_comparison = is_of_comparison(folders[0]);
    const std::string page = folders[0] + (is_comparison ? "/comparison.html" : "/report.html");
    const std::string to = output == given.end() ? page : output->second;
    return is_comparison ? report_of_comparison(folders[0], to) : report_of_run(folders[0], to);
  }
  if (output == given.end()) {
    return Status::invalid_argument("report: of several runs, --output=FILE.html must say where the page is to lie");
  }
  SYNCOPATE_ASSIGN_OR_RETURN(ComparisonReport report, read_finished_runs(folders));
  report.command = fmt::format("./run_experiment {}", fmt::join(words, " "));
  SYNCOPATE_RETURN_IF_ERROR(write_whole_file(output->second, comparison_html(report)));
  return fmt::format("page in {}\n", output->second);
}

}  // namespace syncopate::experiments
