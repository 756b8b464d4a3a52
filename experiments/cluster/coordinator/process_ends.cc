#include "experiments/cluster/coordinator/process_ends.h"

#include <algorithm>
#include <utility>

#include "experiments/cluster/launcher/launcher.h"

namespace syncopate::experiments {
namespace {

// How long mpirun has to end itself once its processes have ended.
constexpr Duration kCarrierPatience = std::chrono::seconds(5);

}  // namespace

ProcessEnds::ProcessEnds(ClusterRuntime& runtime, RunMonitor& monitor, Patience patience,
                         std::function<void()> receive_all)
    : runtime_(runtime),
      monitor_(monitor),
      clock_(runtime.threads().clock()),
      patience_(patience),
      receive_all_(std::move(receive_all)) {}

void ProcessEnds::take() {
  for (const EndedChild& ended : runtime_.take_ended()) on_end(ended);
}

void ProcessEnds::end_carriers(TimePoint now) {
  if (!monitor_.over()) return;
  if (!all_ended_) all_ended_ = now;
  if (now - *all_ended_ >= kCarrierPatience) runtime_.kill_all();
}

void ProcessEnds::forgive(Duration absence) {
  if (all_ended_) *all_ended_ += absence;
}

void ProcessEnds::on_end(const EndedChild& ended) {
  if (!ended.process) {
    return monitor_.on_carrier_end(runtime_.carried(), ended.end, ended.name, last_words_of(ended.log_file),
                                   clock_.now());
  }
  const bool ended_well = ended.end.exit_code == 0;
  const Duration patience = ended_well ? std::max(patience_.last_words, patience_.finished) : patience_.last_words;
  if (!ended.end.signal) hear_last_words(*ended.process, patience);
  ProcessEnd end = ended.end;
  if (end.has_last_words()) end.last_words = last_words_of(ended.log_file);
  monitor_.on_end(*ended.process, end, clock_.now());
}

// Receives what a process that was not killed sent before it ended.
void ProcessEnds::hear_last_words(std::size_t process, Duration patience) {
  const TimePoint deadline = clock_.now() + patience;
  receive_all_();
  while (!monitor_.stopping() && monitor_.still_there(process) && clock_.now() < deadline) {
    runtime_.wait_for_message(deadline - clock_.now());
    receive_all_();
  }
}

}  // namespace syncopate::experiments
