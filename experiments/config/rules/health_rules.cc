#include "experiments/config/rules/health_rules.h"

#include <fmt/format.h>

#include <string>

#include "experiments/config/rules/table_rules.h"

namespace syncopate::experiments {
namespace {

using Run = ResolvedRun;

// A kind of run that cannot leave a step out; why, and what would be right.
struct NoSkip {
  bool (*holds)(const Run&);
  std::string (*why)(const Run&);
};

bool keeps_residuals(const Run& run) {
  const CodecKind kind = codec_of(run).kind;
  return compresses(run) && kind != CodecKind::kNone && kind != CodecKind::kFp16 && kind != CodecKind::kBf16;
}

const NoSkip kNoSkips[] = {
    {[](const Run& r) { return r.device == DeviceKind::kCuda; },
     [](const Run&) -> std::string {
       return "gradients in a GPU's memory are not looked at before the update; use stop, which the loss leads to, or "
              "--device=cpu";
     }},
    {[](const Run& r) { return averages_weights(r) || (has_servers(r) && r.consistency.pushes_weights()); },
     [](const Run&) -> std::string {
       return "each worker makes steps of its own, and none of them is a step of all; use stop, or a mode that sums "
              "gradients";
     }},
    {[](const Run& r) { return shards_state(r); },
     [](const Run&) -> std::string {
       return "each worker sees its own share of the sums alone; use stop, or --mode=allreduce";
     }},
    {[](const Run& r) { return has_servers(r) && r.backup_workers > 0; },
     [](const Run& r) {
       return fmt::format(
           "parts of the weights are updated without the worker that is late, be it the one that would "
           "leave the step out; use stop, or leave --backup-workers={} out",
           r.backup_workers);
     }},
    {[](const Run& r) { return aggregates_on_hosts(r); },
     [](const Run&) -> std::string {
       return "a host's workers push one sum; use stop, or leave --aggregation=host out";
     }},
    {keeps_residuals,
     [](const Run& r) {
       return fmt::format(
           "--compress={} keeps what it has not sent of a gradient, which would be NaN from then on; use "
           "stop, or --compress=fp16 or bf16",
           to_string(r.compress));
     }},
    {[](const Run& r) { return has_tables(r); },
     [](const Run&) -> std::string {
       return "rows of tables are updated by themselves; use stop, or --embeddings=dense";
     }},
};

}  // namespace

Status validate_health(const ResolvedRun& config) {
  if (config.on_nan != OnNan::kSkip || !has_evaluator(config)) return {};
  for (const NoSkip& one : kNoSkips) {
    if (one.holds(config)) return Status::invalid_argument("--on-nan=skip: " + one.why(config));
  }
  return {};
}

}  // namespace syncopate::experiments
