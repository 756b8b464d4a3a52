#include "experiments/lab/report/comparison_files.h"

#include "common/os/whole_file.h"

namespace syncopate::experiments {

Status write_comparison(const ComparisonReport& report, const std::string& folder) {
  SYNCOPATE_RETURN_IF_ERROR(write_whole_file(folder + "/comparison.csv", comparison_csv(report)));
  SYNCOPATE_RETURN_IF_ERROR(write_whole_file(folder + "/comparison.json", comparison_json(report)));
  return write_whole_file(folder + "/comparison.html", comparison_html(report));
}

}  // namespace syncopate::experiments
