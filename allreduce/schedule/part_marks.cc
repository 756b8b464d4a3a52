#include "allreduce/schedule/part_marks.h"

#include <cstddef>
#include <map>
#include <set>

namespace syncopate::allreduce {

std::vector<PartMarks> marks_of(const Schedule& schedule) {
  std::vector<PartMarks> marks(schedule.size());
  std::set<std::size_t> met;                     // parts, by where they begin
  std::map<std::size_t, std::size_t> last_step;  // that receives a part
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const ScheduleStep& step = schedule[i];
    if (step.send) marks[i].send_is_first = met.insert(step.send->range.begin).second;
    if (!step.receive) continue;
    marks[i].receive_is_first = met.insert(step.receive->range.begin).second;
    last_step[step.receive->range.begin] = i;
  }
  for (const auto& [part, step] : last_step) marks[step].receive_is_last = true;
  return marks;
}

}  // namespace syncopate::allreduce
