#include "experiments/cluster/tasks/task_group.h"

#include <fmt/format.h>
#include <sodium.h>

#include <utility>

#include "experiments/cluster/host/build_facts.h"
#include "experiments/cluster/tasks/task_address.h"

namespace syncopate::experiments {
namespace {

using Kind = TaskMessage::Kind;

constexpr Duration kReleaseTimeout = std::chrono::seconds(1);

Status without(const Status& status, const TaskPlace& place, int rank, Duration timeout) {
  if (status.code() == Code::kDeadlineExceeded) {
    return Status::deadline_exceeded(
        fmt::format("rank {} of the {} that {} has started has not come within {:.3g} s: {}", rank, place.size,
                    launcher_of(place.by), seconds(timeout), status.message()));
  }
  return status.in(fmt::format("rank {} of {}", rank, launcher_of(place.by)));
}

Result<HostReport> report_from(TaskConnection& task, TimePoint deadline) {
  SYNCOPATE_ASSIGN_OR_RETURN(const TaskMessage answer, task.receive_by(deadline));
  if (answer.kind != Kind::kReport) return Status::data_loss("it has not answered as this program does");
  SYNCOPATE_ASSIGN_OR_RETURN(HostReport report, parse_host_report(answer.bytes));
  if (report.fingerprint == source_fingerprint()) return report;
  return Status::invalid_argument(fmt::format("its program is of other sources ({}) than this one ({}); build the same",
                                              report.fingerprint, source_fingerprint()));
}

}  // namespace

Result<TaskGroup> TaskGroup::gather(const TaskPlace& place, const Options& options) {
  const TimePoint deadline = SteadyClock().now() + options.timeout;
  TaskGroup group;
  group.tasks_.push_back({.address = "", .report = this_host(options.with_gpus, "")});
  for (int rank = 1; rank < place.size; ++rank) {
    group.tasks_.push_back({.address = local_address_of(place, rank), .report = {}});
    Result<TaskConnection> task = connect_to_task(group.tasks_.back().address, deadline);
    if (!task.ok()) return without(task.status(), place, rank, options.timeout);
    // They look for GPUs at the same time.
    const Status held = task->send({Kind::kHold, options.with_gpus ? "gpus" : ""}, deadline);
    if (!held.ok()) return without(held, place, rank, options.timeout);
    group.holds_.push_back(std::move(*task));
  }
  for (int rank = 1; rank < place.size; ++rank) {
    Result<HostReport> report = report_from(group.holds_[static_cast<std::size_t>(rank) - 1], deadline);
    if (!report.ok()) return without(report.status(), place, rank, options.timeout);
    group.tasks_[static_cast<std::size_t>(rank)].report = std::move(*report);
  }
  return group;
}

TaskGroup::~TaskGroup() {
  for (TaskConnection& hold : holds_) (void)hold.send({Kind::kRelease}, SteadyClock().now() + kReleaseTimeout);
}

}  // namespace syncopate::experiments
