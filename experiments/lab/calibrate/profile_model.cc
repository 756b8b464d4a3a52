#include "experiments/lab/calibrate/profile_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "common/os/whole_file.h"
#include "common/text/format.h"
#include "experiments/cluster/measurement/solo_measurement.h"
#include "experiments/lab/report/machine_state.h"
#include "experiments/lab/report/text_table.h"

namespace syncopate::experiments {
namespace {

using prediction::TensorProfile;

double tensor_seconds(const TensorProfile& tensor) { return tensor.forward_seconds + tensor.backward_seconds; }

}  // namespace

Status check_free(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(std::filesystem::symlink_status(path, error))) return {};
  return Status::invalid_argument(
      fmt::format("--output={}: is there already; name another file, or remove that one first", path));
}

std::string profile_text(const prediction::ModelProfile& profile) {
  constexpr std::size_t kMostRows = 12;
  double forward = 0;
  for (const TensorProfile& tensor : profile.tensors) forward += tensor.forward_seconds;
  const double step = profile.step_seconds();
  std::string text =
      fmt::format("{}, batches of {}: {} ms a step, {} ms of it forward, by one thread with nothing beside it",
                  profile.model, profile.batch_size, format_ms(step * 1e3), format_ms(forward * 1e3));
  if (profile.forward_flops() > 0) {
    // Backward does each product of the forward pass twice.
    text += fmt::format("; {:.3g} GFLOPS", 3 * profile.forward_flops() * profile.batch_size / step / 1e9);
  }
  text += "\n\n";
  std::vector<TensorProfile> tensors = profile.tensors;
  std::ranges::stable_sort(tensors, std::ranges::greater(), tensor_seconds);
  std::vector<std::vector<std::string>> rows = {{"tensor", "parameters", "forward ms", "backward ms", "of the step"}};
  for (std::size_t row = 0; row < std::min(kMostRows, tensors.size()); ++row) {
    const TensorProfile& tensor = tensors[row];
    rows.push_back({tensor.name, format_count(static_cast<double>(tensor.parameters)),
                    format_ms(tensor.forward_seconds * 1e3), format_ms(tensor.backward_seconds * 1e3),
                    fmt::format("{:.1f} %", 100 * tensor_seconds(tensor) / step)});
  }
  text += text_table(rows);
  if (tensors.size() > kMostRows) text += fmt::format("and {} smaller ones\n", tensors.size() - kMostRows);
  return text;
}

Result<std::string> profile_model(const ResolvedRun& config) {
  SYNCOPATE_RETURN_IF_ERROR(check_free(config.output));
  const MachineReading before = read_machine();
  SYNCOPATE_ASSIGN_OR_RETURN(const prediction::ModelProfile profile, measure_profile(config));
  const std::string beware = beware_lines(load_between(before, read_machine(), 1));
  SYNCOPATE_RETURN_IF_ERROR(write_whole_file(config.output, to_json(profile)));
  const std::string batch =
      config.batch_size == kUsualBatchSize ? "" : fmt::format(" --batch-size={}", config.batch_size);
  return fmt::format(
      "{}{}\n{} can now stand for it:\n"
      "  run_experiment --cluster=simulated --mode=allreduce --workers=16 --model={}{} --compute={}\n"
      "  run_experiment --cluster=simulated --mode=allreduce --workers=16 --model=profile:{}{}\n"
      "  run_experiment predict --profile={} --workers=1,4,16 --shape=10gbit+50us\n",
      profile_text(profile), beware.empty() ? "" : "\n" + beware, config.output, config.model, batch, config.output,
      config.output, batch, config.output);
}

}  // namespace syncopate::experiments
