#include "tests/support/schedule_simulation.h"

namespace syncopate::testing_support {

using allreduce::ReceivePart;
using allreduce::Schedule;
using allreduce::ScheduleStep;
using allreduce::SendPart;

ScheduleSimulation::ScheduleSimulation(std::vector<Schedule> schedules, std::vector<Buffer> buffers,
                                       const SimulatedWire& wire)
    : schedules_(std::move(schedules)),
      buffers_(std::move(buffers)),
      wire_(wire),
      random_(wire.seed),
      progress_(schedules_.size()),
      inboxes_(schedules_.size() * schedules_.size()),
      sent_elements_(schedules_.size()),
      sent_messages_(schedules_.size()) {}

bool ScheduleSimulation::run() {
  const auto size = static_cast<int>(schedules_.size());
  while (true) {
    std::vector<int> movable;
    for (int rank = 0; rank < size; ++rank) {
      if (rank != wire_.slowest && can_move(rank)) movable.push_back(rank);
    }
    if (movable.empty() && wire_.slowest >= 0 && can_move(wire_.slowest)) movable.push_back(wire_.slowest);
    if (movable.empty()) break;
    if (!move(movable[random_.below(movable.size())])) return false;
  }
  for (const std::deque<Part>& parts : inboxes_) {
    if (!parts.empty()) return false;
  }
  return finished() == schedules_.size();
}

std::size_t ScheduleSimulation::finished() const {
  std::size_t count = 0;
  for (std::size_t rank = 0; rank < schedules_.size(); ++rank) {
    count += progress_[rank].step == schedules_[rank].size() ? 1 : 0;
  }
  return count;
}

bool ScheduleSimulation::can_move(int rank) {
  const auto at = static_cast<std::size_t>(rank);
  if (progress_[at].step == schedules_[at].size()) return false;
  const ScheduleStep& step = schedules_[at][progress_[at].step];
  if (step.send && !progress_[at].sent) {
    return step.send->peer == rank || inbox(rank, step.send->peer).size() < wire_.room;
  }
  return !step.receive || !inbox(step.receive->peer, rank).empty();
}

bool ScheduleSimulation::move(int rank) {
  const auto at = static_cast<std::size_t>(rank);
  Progress& progress = progress_[at];
  const ScheduleStep& step = schedules_[at][progress.step];
  if (step.send && !progress.sent) {
    send(rank, *step.send);
    progress.sent = true;
    if (step.receive) return true;
  }
  if (step.receive && !receive(rank, *step.receive)) return false;
  ++progress.step;
  progress.sent = false;
  return true;
}

void ScheduleSimulation::send(int rank, const SendPart& part) {
  const auto at = static_cast<std::size_t>(rank);
  Part sent{.range = part.range};
  sent.in_place = wire_.reads == SimulatedWire::Reads::kWhenReceived && !part.copied;
  if (!sent.in_place) {
    const auto begin = buffers_[at].begin();
    sent.payload.assign(begin + static_cast<std::ptrdiff_t>(part.range.begin),
                        begin + static_cast<std::ptrdiff_t>(part.range.end));
  }
  inbox(rank, part.peer).push_back(std::move(sent));
  if (part.peer == rank) return;
  sent_elements_[at] += part.range.size();
  ++sent_messages_[at];
}

bool ScheduleSimulation::receive(int rank, const ReceivePart& part) {
  std::deque<Part>& parts = inbox(part.peer, rank);
  const Part sent = std::move(parts.front());
  parts.pop_front();
  if (sent.range != part.range) return false;
  for (std::size_t i = 0; i < part.range.size(); ++i) {
    const std::size_t element = part.range.begin + i;
    const double value = sent.in_place ? buffers_[static_cast<std::size_t>(part.peer)][element] : sent.payload[i];
    double& own = buffers_[static_cast<std::size_t>(rank)][element];
    own = part.then == ReceivePart::Then::kReduce ? own + value : value;
  }
  return true;
}

std::vector<Schedule> for_all_ranks(int size, const std::function<Schedule(int rank)>& schedule) {
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < size; ++rank) schedules.push_back(schedule(rank));
  return schedules;
}

}  // namespace syncopate::testing_support
