#include "experiments/cluster/process/roles.h"

#include <memory>

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

// Returns null in a run that traces nothing, and for the evaluator.
std::unique_ptr<Tracer> tracer_of(const RoleContext& context) {
  const ResolvedRun& config = context.config;
  if (!config.trace || context.role == Role::kEvaluator) return nullptr;
  return trace_plan_of(config).make_tracer(context.host.clock());
}

}  // namespace

void hand_in_trace(const RoleContext& context) {
  if (context.tracer == nullptr) return;
  const Tracer::Recorded recorded = context.tracer->take();
  if (recorded.events.empty() && recorded.dropped == 0) return;
  context.control.send_trace(recorded.events, recorded.dropped);
}

Status take_part(RoleContext context) {
  const std::unique_ptr<Tracer> tracer = tracer_of(context);
  context.tracer = tracer.get();
  context.control.set_timeout(from_seconds(context.config.timeout_seconds), stall_warning_of(context.config));
  const Status status = caught([&] { return run_role(context); });
  hand_in_trace(context);
  if (status.ok()) {
    if (context.role != Role::kServer) context.control.finished({});
  } else if (status.code() != Code::kCancelled) {
    context.control.failed(status);
  }
  return status;
}

}  // namespace syncopate::experiments
