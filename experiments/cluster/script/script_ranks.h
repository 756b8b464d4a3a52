// ScriptRanks: what a simulated run has from the ranks of a script. Each computes real gradients, one rank at a time,
// alone on the cores: a rank goes on when its worker's virtual time has come, and the world stands still until its next
// gradients are there.
//
//   start ── the script begins, ranks come, and set themselves up beside each other
//   open ──▶ all have given their tensors and options, and wait                     (Opening)
//   go_on ─▶ by a worker: its rank has the weights that it shall compute with       (ScriptStep, or it has left)
//   close ─▶ the ranks that have left end, beside each other
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/param_layout.h"
#include "experiments/cluster/command/new_lines.h"
#include "experiments/cluster/coordinator/coordinator.h"
#include "experiments/cluster/coordinator/interrupts.h"
#include "experiments/cluster/script/script_link.h"
#include "experiments/cluster/script/script_meetings.h"
#include "experiments/cluster/script/script_processes.h"
#include "library/training_options.h"

namespace syncopate::experiments {

// What all ranks have said that they train with.
struct ScriptOpening {
  ParamLayout layout;
  library::TrainingOptions options;
  bool takes_means = false;    // ranks make the updates, from the means of gradients (allreduce)
  bool gives_in_step = false;  // gradients are handed over in step(), after the whole of backward
};

// A rank has computed gradients, which lie in its memory.
struct ScriptStep {
  double learning_rate = 0;
  Duration before{};            // its update, data and forward, until backward began
  std::vector<Duration> ready;  // by tensor: from then until its gradient was handed over
  int samples = 1;
};

class ScriptRanks {
 public:
  // Fails if the program cannot be started. All that `start` refers to, the observer and the interrupts outlive it.
  static Result<std::unique_ptr<ScriptRanks>> start(const ScriptStart& start, RunObserver& observer,
                                                    Interrupts& interrupts);

  // Fails with invalid argument where the script cannot do what is asked, and with peer lost where a rank ends before.
  Result<ScriptOpening> open();

  // By the worker of this rank. `weights` become the rank's, or, where it takes means, these: empty before its first
  // step. Returns what the rank has computed with them; nothing once it has left. `pause` lets some virtual time pass,
  // for what other ranks have to do first.
  Result<std::optional<ScriptStep>> go_on(int rank, std::span<const float> weights, const Clock& clock,
                                          const std::function<void()>& pause);
  // The first failure of go_on(): a script's rank that fails ends the run in every mode.
  const Status& failure() const { return failure_; }
  // The weights that a rank has, and the gradients of the step that go_on() has returned.
  Result<std::span<const float>> weights(int rank);
  Result<std::span<const float>> gradients(int rank);

  // What a rank has said, by now, of the loss and the accuracy of one of its steps; not a number if nothing.
  struct Learnt {
    double loss, accuracy;
  };
  Learnt learnt(int rank, std::int64_t step) const;
  // Evaluations that rank 0 has told since the last call, in virtual time.
  std::vector<EvaluationResult> take_evaluations() { return std::exchange(evaluations_, {}); }
  // Shows what rank 0 has printed.
  void show_output(bool is_last);

  // After the run. Waits for the ranks to end, unless they are not to go on (`kill`). Fails with peer lost where one
  // has ended badly.
  Status close(bool kill);

 private:
  struct Rank {
    std::optional<ScriptLink> link;
    std::vector<SharedMemory> memory;  // as ScriptProcesses::Arrival has it
    std::optional<nlohmann::json> exchange;
    bool has_joined = false;
    bool has_left = false;
    bool waits_in_meeting = false;
    TimePoint answered{};  // last, in real time
    std::map<std::int64_t, Learnt> learnt;
    std::vector<std::set<std::size_t>> absent = {};  // tensors without a gradient, by step
  };

  ScriptRanks(const ScriptStart& start, RunObserver& observer, Interrupts& interrupts, ScriptDoor door)
      : config_(start.config),
        observer_(observer),
        processes_(start, interrupts, std::move(door)),
        meetings_(start.config.workers),
        ranks_(static_cast<std::size_t>(start.config.workers)),
        output_(processes_.log_of(0)) {}

  Rank& of(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  Status take_arrivals();
  // Serves all ranks that talk, beside each other, until `is_done`. Fails with deadline exceeded, which names those
  // that are awaited, once none has said anything for the time that a wait may take.
  Status serve(const std::function<bool()>& is_done, bool (*is_awaited)(const Rank&), const char* doing);
  // What a rank says at any time. Returns whether that is all that it was.
  Result<bool> take_news(int rank, const nlohmann::json& line, TimePoint now);
  Status come_to_meeting(int rank, const nlohmann::json& line);
  // Answers a rank whose meeting is complete; false: it is not.
  Result<bool> answer_meeting(int rank);
  Result<ScriptStep> step_of(int rank, const nlohmann::json& line);
  nlohmann::json absent_everywhere(int rank, std::size_t step) const;
  Result<std::optional<ScriptStep>> go_on_until_computed(int rank, std::span<const float> weights, const Clock& clock,
                                                         const std::function<void()>& pause);
  // Where ranks take means, all make as many steps: fails once this one has made more than one that has left, or has
  // left before another's last.
  Status check_as_many_steps(int rank) const;
  Result<ScriptOpening> opening();
  Status spread_weights();
  // A model's floats in the rank's memory, from this one on.
  Result<std::span<const float>> floats_of(int rank, std::size_t first);

  const ResolvedRun& config_;
  RunObserver& observer_;
  const SteadyClock clock_;
  ScriptProcesses processes_;
  ScriptMeetings meetings_;
  std::vector<Rank> ranks_;
  NewLines output_;
  std::vector<EvaluationResult> evaluations_;
  ScriptOpening opening_;
  Status failure_;
  bool is_interrupted_ = false;  // the run is ending
};

}  // namespace syncopate::experiments
