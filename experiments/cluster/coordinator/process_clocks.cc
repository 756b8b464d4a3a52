#include "experiments/cluster/coordinator/process_clocks.h"

namespace syncopate::experiments {

ProcessClocks::ProcessClocks(const JobPlan& plan, const Clock& clock, ControlServer& control)
    : plan_(plan), clock_(clock), control_(control), offsets_(plan.processes.size()) {}

void ProcessClocks::on_question(std::size_t process, const control::ClockQuestion& question, TimePoint received) {
  control::FromCoordinator message;
  control::ClockAnswer& answer = *message.mutable_clock_answer();
  answer.set_sent(question.sent());
  answer.set_received(received.time_since_epoch().count());
  answer.set_answered(clock_.now().time_since_epoch().count());
  control_.send(process, message);
}

void ProcessClocks::on_report(std::size_t process, const control::ClockReport& report) {
  offsets_[process] = Duration(report.offset());
  uncertainty_[plan_.processes[process].name()] = Duration(report.uncertainty());
}

}  // namespace syncopate::experiments
