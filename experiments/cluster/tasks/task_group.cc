#include "experiments/cluster/tasks/task_group.h"

#include <fmt/format.h>
#include <sodium.h>

#include <map>
#include <utility>

#include "common/os/socket_address.h"
#include "common/text/printable_text.h"
#include "experiments/cluster/host/build_facts.h"
#include "experiments/cluster/tasks/task_address.h"
#include "experiments/cluster/tasks/task_command.h"
#include "experiments/cluster/tasks/task_meeting.h"

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

// Returns the address of a host: that at which the task listens.
std::string address_in(const Task& task) {
  const Result<NetworkTask> there = parse_network_address(task.address);
  return there.ok() ? there->listener.host() : "";
}

// Hosts are told apart by their names. Fails if two tasks have the same one on different hosts.
Status check_names(const std::vector<Task>& tasks, const std::string& own_address) {
  std::map<std::string, std::pair<std::string, std::size_t>> found;  // address and rank, by the host's name
  for (std::size_t rank = 0; rank < tasks.size(); ++rank) {
    const std::string& name = tasks[rank].report.environment.host;
    const std::string address = rank == 0 ? own_address : address_in(tasks[rank]);
    const auto& [first, is_new] = found.try_emplace(name, address, rank);
    if (is_new || first->second.first == address) continue;
    return Status::invalid_argument(
        fmt::format("ranks {} and {} are on {} and {}, and both hosts are called {}; give each "
                    "host, or container, a name of its own",
                    first->second.second, rank, first->second.first, address, printable(name)));
  }
  return {};
}

}  // namespace

Status TaskGroup::meet(const TaskPlace& place, Duration timeout) {
  if (!place.one_host) {
    SYNCOPATE_ASSIGN_OR_RETURN(std::vector<MetTask> met, receive_tasks(place, timeout));
    for (MetTask& task : met) {
      const SocketAddress here = SocketAddress::of_socket(task.connection.descriptor());
      // Where other hosts reach this one counts, if there are any.
      if (address_.empty() || address_in({.address = task.address, .report = {}}) != here.host())
        address_ = here.host();
      tasks_.push_back({.address = task.address, .report = {}});
      holds_.push_back(std::move(task.connection));
    }
    return {};
  }
  const TimePoint deadline = SteadyClock().now() + timeout;
  for (int rank = 1; rank < place.size; ++rank) {
    SYNCOPATE_ASSIGN_OR_RETURN(std::string address, local_address_of(place, rank));
    tasks_.push_back({.address = std::move(address), .report = {}});
    Result<TaskConnection> task = connect_to_task(tasks_.back().address, "", deadline);
    if (!task.ok()) return without(task.status(), place, rank, timeout);
    holds_.push_back(std::move(*task));
  }
  return {};
}

Result<TaskGroup> TaskGroup::gather(const TaskPlace& place, const Options& options) {
  TaskGroup group;
  group.tasks_.push_back({.address = "", .report = {}});
  SYNCOPATE_RETURN_IF_ERROR(group.meet(place, options.timeout));
  group.tasks_[0].report = this_host(options.with_gpus, group.address_);
  const TimePoint deadline = SteadyClock().now() + options.timeout;
  for (int rank = 1; rank < place.size; ++rank) {  // they look for GPUs at the same time
    const HoldOrder order{.with_gpus = options.with_gpus, .towards = group.address_};
    const Status held = group.hold_of(rank).send({Kind::kHold, order.to_text()}, deadline);
    if (!held.ok()) return without(held, place, rank, options.timeout);
  }
  for (int rank = 1; rank < place.size; ++rank) {
    Result<HostReport> report = report_from(group.hold_of(rank), deadline);
    if (!report.ok()) return without(report.status(), place, rank, options.timeout);
    group.tasks_[static_cast<std::size_t>(rank)].report = std::move(*report);
  }
  if (!place.one_host) SYNCOPATE_RETURN_IF_ERROR(check_names(group.tasks_, group.address_));
  return group;
}

TaskGroup::~TaskGroup() {
  for (TaskConnection& hold : holds_) (void)hold.send({Kind::kRelease}, SteadyClock().now() + kReleaseTimeout);
}

}  // namespace syncopate::experiments
