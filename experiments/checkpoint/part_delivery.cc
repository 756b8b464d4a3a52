#include "experiments/checkpoint/part_delivery.h"

#include <utility>

#include "common/os/whole_file.h"
#include "experiments/checkpoint/checkpoint_store.h"

namespace syncopate::experiments {

void deliver_part(PartOptions options, const StateForms& forms, const TrainingState& state, const std::stop_token& stop,
                  CheckpointReport report, const ReportCheckpoint& tell) {
  options.folder += "/" + attempt_name(report.step, report.membership_epoch);
  if (const Status made = make_folder(options.folder); !made.ok()) return tell_failure(std::move(report), made, tell);
  Result<StoredPart> part = write_part(options, forms, state, stop);
  if (part.status().code() == Code::kCancelled) return;
  if (!part.ok()) return tell_failure(std::move(report), part.status(), tell);
  report.part = std::move(*part);
  tell(report);
}

void tell_failure(CheckpointReport report, const Status& status, const ReportCheckpoint& tell) {
  report.kind = CheckpointReport::Kind::kFailed;
  report.reason = status.message();
  tell(report);
}

}  // namespace syncopate::experiments
