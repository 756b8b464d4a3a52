// ScriptRanks: the processes of a script whose ranks take part in a simulated run. One process begins the script; where
// that has imported torch, it becomes as many as the run has workers (python/syncopate/_ranks.py). Each computes real
// gradients, one rank at a time, alone on the cores: a rank goes on when its worker's virtual time has come, and the
// world stands still until its next gradients are there.
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
#include "experiments/cluster/launcher/launcher.h"
#include "experiments/cluster/script/script_link.h"
#include "experiments/cluster/script/script_meetings.h"
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

struct ScriptStart {
  const ResolvedRun& config;
  const JobPlan& plan;               // of the program: a process for each rank
  const std::string& program;        // this executable
  const std::string& log_directory;  // receives what ranks print: script-1.log
};

class ScriptRanks {
 public:
  // Fails if the program cannot be started. All that `start` refers to, the observer and the interrupts outlive it.
  static Result<std::unique_ptr<ScriptRanks>> start(const ScriptStart& start, RunObserver& observer,
                                                    Interrupts& interrupts);
  ~ScriptRanks();

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
    std::vector<SharedMemory> memory;  // of operations of all ranks; of weights and gradients
    std::optional<nlohmann::json> exchange;
    bool has_joined = false;
    bool has_left = false;
    bool waits_in_meeting = false;
    TimePoint answered{};  // last, in real time
    std::map<std::int64_t, Learnt> learnt;
    std::vector<std::set<std::size_t>> absent = {};  // tensors without a gradient, by step
  };

  ScriptRanks(const ScriptStart& start, RunObserver& observer, Interrupts& interrupts, ScriptDoor door)
      : start_(start),
        observer_(observer),
        interrupts_(interrupts),
        door_(std::move(door)),
        meetings_(start.config.workers),
        ranks_(static_cast<std::size_t>(start.config.workers)),
        output_(log_of(0)) {}

  std::string log_of(int rank) const;
  Rank& of(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  // Takes new connections, and what the first process says of ranks that have ended.
  Status take_arrivals();
  Status take_arrival(ScriptLink& link, bool& is_known);
  // Waits in real time until something has come on `links`, or the deadline; false: an interrupt has come.
  bool wait(std::span<const int> ranks, TimePoint deadline);
  // Serves all ranks that talk, beside each other, until `is_done`.
  Status check_begins();
  Status serve(const std::function<bool()>& is_done, const char* doing);
  // What a rank says at any time. Returns whether that is all that it was.
  Result<bool> take_news(int rank, const nlohmann::json& line, TimePoint now);
  Status come_to_meeting(int rank, const nlohmann::json& line);
  // Answers a rank whose meeting is complete; false: it is not.
  Result<bool> answer_meeting(int rank);
  Result<ScriptStep> step_of(int rank, const nlohmann::json& line);
  nlohmann::json absent_everywhere(int rank, std::size_t step) const;
  // The end of a rank's connection: how its process has ended.
  Status end_of(int rank);
  Status failure_of(int rank, int status) const;
  Result<std::optional<ScriptStep>> go_on_until_computed(int rank, std::span<const float> weights, const Clock& clock,
                                                         const std::function<void()>& pause);
  // Where ranks take means, all make as many steps: fails once this one has made more than one that has left, or has
  // left before another's last.
  Status check_as_many_steps(int rank) const;
  Result<ScriptOpening> opening();
  Status spread_weights();

  const ScriptStart start_;
  RunObserver& observer_;
  Interrupts& interrupts_;
  const SteadyClock clock_;
  ScriptDoor door_;
  std::vector<ScriptLink> unknown_;   // connections that have not said who they are
  std::optional<ScriptLink> parent_;  // of the process that has begun the script
  std::map<int, int> ended_;          // ranks' statuses, as waitpid(2) gives them
  std::optional<StartedChild> child_;
  ScriptMeetings meetings_;
  std::vector<Rank> ranks_;
  NewLines output_;
  std::vector<EvaluationResult> evaluations_;
  ScriptOpening opening_;
  Status failure_;
  bool is_interrupted_ = false;  // the run is ending
};

}  // namespace syncopate::experiments
