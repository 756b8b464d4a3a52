// GenerationCourse: who takes part in a run, as processes are lost and come (back). Pure: it is told, and says what
// that means and what the next generation is to be.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "experiments/cluster/control/generation.h"
#include "experiments/config/rules/survival_rules.h"

namespace syncopate::experiments {

class GenerationCourse {
 public:
  // The first generation has all workers, servers and standbys of the plan, which outlives the course. Until something
  // has been trained all go on from the checkpoint `resume`; empty: from the initial weights.
  GenerationCourse(const JobPlan& plan, const Recovery& recovery, std::string resume = {});

  const Generation& current() const { return current_; }
  bool is_member(std::size_t process) const;

  // What the loss of a process means.
  enum class Loss {
    kEndsRun,
    kOthersGoOn,  // as they are
    kRegroup,     // in a new generation, without it
    kGoBack,      // to the last checkpoint, in a new generation, once all shards have a home again
  };
  struct Circumstances {
    bool begins = false;               // nothing has been trained yet
    bool can_go_back = false;          // there is a checkpoint
    bool other_home_is_empty = false;  // of a server's or a standby's shards: it has only just come
  };
  Loss on_lost(std::size_t process, const Circumstances& circumstances);

  // A process that was lost is ready to take part again: in the next generation.
  void on_ready(std::size_t process);

  // All shards have a server or a standby that is ready.
  bool has_all_homes() const;
  bool has_home(std::size_t process) const;  // the shards of that server or standby
  // All are to go back to a checkpoint: from the loss that made it so, until all have trained on from there. Each
  // generation meanwhile restores it, since any of them may have missed the last.
  bool goes_back() const { return goes_back_; }
  // All that take part have trained in this generation.
  void on_all_train() { goes_back_ = goes_back_ && current_.number < goes_back_in_; }

  // The next generation: those that are there now. If they are to go back, it is to `checkpoint`. Not while a shard has
  // no home.
  const Generation& proclaim(bool begins, const std::string& checkpoint = {});

 private:
  const ProcessSpec& spec(std::size_t process) const { return plan_.processes[process]; }
  Loss on_server_lost(ServerSeats& seats, Role role, const Circumstances& circumstances);

  const JobPlan& plan_;
  const Recovery recovery_;
  const std::string resume_;
  Generation current_;
  Generation next_;  // as it would be now
  bool goes_back_ = false;
  std::int64_t goes_back_in_ = 0;  // the first generation that does, for the last loss that made it so
};

}  // namespace syncopate::experiments
