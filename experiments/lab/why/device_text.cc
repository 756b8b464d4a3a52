#include "experiments/lab/why/device_text.h"

#include <fmt/format.h>

#include <vector>

#include "common/text/format.h"
#include "experiments/lab/report/text_table.h"

namespace syncopate::experiments {
namespace {

// Launches that take this part of what they launch may be what it waits for.
constexpr double kAsLong = 0.9;

using prediction::LeastTime;

std::vector<std::string> row_of(const char* phase, double ms, const LeastTime* least) {
  std::vector<std::string> cells{phase, format_ms(ms)};
  if (least == nullptr) return cells;
  for (const double seconds : {least->seconds, least->compute_seconds, least->memory_seconds}) {
    cells.push_back(format_ms(seconds * 1e3));
  }
  cells.push_back(ms > 0 ? fmt::format("{:.0f} %", 100 * least->seconds * 1e3 / ms) : "-");
  return cells;
}

std::string phases_table(const ExplainedRun& run) {
  const DeviceFigures& device = run.waterfall.device;
  const DeviceLeast* const least = run.least ? &*run.least : nullptr;
  std::vector<std::vector<std::string>> rows{{"by its clock", "ms a step"}};
  if (least != nullptr) {
    for (const char* const name : {"at least", "compute-bound", "memory-bound", "reached"}) rows[0].emplace_back(name);
  }
  rows.push_back(row_of("forward", device.forward_ms, least == nullptr ? nullptr : &least->forward));
  rows.push_back(row_of("backward", device.backward_ms, least == nullptr ? nullptr : &least->backward));
  if (run.updates_on_device) {
    rows.push_back(row_of("update", device.optimizer_ms, least == nullptr ? nullptr : &least->update));
  }
  return text_table(rows);
}

std::string least_line(const ExplainedRun& run) {
  if (run.least) {
    return fmt::format("at least: by the peak rates of {} in {}, each value read and written once ({})",
                       run.least->device.title, run.least->precision, run.least->device.source);
  }
  return "no least time: these times are compared with no data sheet. --device=NAME or FILE.toml gives rates, as to "
         "predict --device";
}

std::string launches_line(const ExplainedRun& run) {
  const DeviceFigures& device = run.waterfall.device;
  std::string text = fmt::format("launches: the host took {} ms to give forward and backward to the GPU, {}",
                                 format_ms(device.launch_ms),
                                 run.pace.captures_steps ? "as one CUDA graph" : "call by call, while the GPU works");
  if (device.copy_ms > 0)
    text += fmt::format("; copies between both were under way for {} ms", format_ms(device.copy_ms));
  if (!waits_for_launches(run)) return text;
  return text + fmt::format(
                    ". That is as long as these took, so that the GPU may have waited for its host: {}larger "
                    "batches give each call more to do",
                    run.may_capture_steps ? "--cuda-graphs=on gives it a step in one piece, and " : "");
}

}  // namespace

bool waits_for_launches(const ExplainedRun& run) {
  const DeviceFigures& device = run.waterfall.device;
  return run.pace.on_device && !run.pace.captures_steps &&
         device.launch_ms >= kAsLong * (device.forward_ms + device.backward_ms);
}

std::string device_text(const ExplainedRun& run) {
  if (!run.pace.on_device) return "";
  return fmt::format("\n{}, the mean of all workers' steps\n{}{}\n{}\n",
                     run.device.empty() ? "GPU (which one is not recorded)" : run.device, phases_table(run),
                     least_line(run), launches_line(run));
}

}  // namespace syncopate::experiments
