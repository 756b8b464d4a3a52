#include "experiments/cluster/process/roles.h"

#include "common/os/exhaustion.h"

namespace syncopate::experiments {
namespace {

Status run_role(const RoleContext& context) {
  switch (context.role) {
    case Role::kWorker:
      return run_worker(context);
    case Role::kServer:
    case Role::kStandby:
      return run_server(context);
    case Role::kEvaluator:
      return run_evaluator(context);
  }
  return Status::internal("unknown role");
}

}  // namespace

Status take_part(const RoleContext& context) {
  context.control.set_timeout(from_seconds(context.config.timeout_seconds), stall_warning_of(context.config));
  const Status status = caught([&] { return run_role(context); });
  if (status.ok()) {
    if (context.role != Role::kServer) context.control.finished({});
  } else if (status.code() != Code::kCancelled) {
    context.control.failed(status);
  }
  return status;
}

}  // namespace syncopate::experiments
