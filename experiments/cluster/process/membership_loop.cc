#include "experiments/cluster/process/membership_loop.h"

#include "common/text/log.h"
#include "experiments/config/rules/survival_rules.h"

namespace syncopate::experiments {

Status take_part_in_memberships(const RoleContext& context, const Clock& clock,
                                const std::function<void()>& say_waiting,
                                const std::function<Status(const MembershipEpoch&)>& take_part) {
  const Recovery recovery = recovery_of(context.config);
  Status status;
  std::int64_t last = -1;
  while (true) {
    say_waiting();
    const TimePoint deadline = clock.now() + from_seconds(context.config.timeout_seconds);
    const Result<MembershipEpoch> membership = context.control.join_membership(last, deadline);
    if (!membership.ok()) {
      return status.ok() || status.code() == Code::kCancelled ? membership.status() : status;
    }
    last = membership->number;
    status = take_part(*membership);
    if (!recovery.may_go_on_after(status.code())) return status;
    log_info("membership {} is over: {}", last, status.message());
    if (status.code() != Code::kCancelled) context.control.report_trouble(status);
  }
}

}  // namespace syncopate::experiments
