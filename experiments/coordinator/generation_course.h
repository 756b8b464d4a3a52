// GenerationCourse: who takes part in a run, as processes are lost and come (back). Pure: it is told, and says what
// that means and what the next generation is to be.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "experiments/config/survival_rules.h"
#include "experiments/control/generation.h"

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
    kGoBack,      // to the last checkpoint, in a new generation, once it has been started again
  };
  // `begins`: nothing has been trained yet. `can_go_back`: there is a checkpoint.
  Loss on_lost(std::size_t process, bool begins, bool can_go_back);

  // A process that was lost is ready to take part again: in the next generation.
  void on_ready(std::size_t process);

  // The next generation: those that are there now. What `restore` names is what they all go on from, if anything.
  const Generation& proclaim(bool begins, const std::string& restore = {});

 private:
  const ProcessSpec& spec(std::size_t process) const { return plan_.processes[process]; }
  Loss on_server_lost(ServerSeats& seats, Role role, bool can_go_back);

  const JobPlan& plan_;
  const Recovery recovery_;
  const std::string resume_;
  Generation current_;
  Generation next_;  // as it would be now
};

}  // namespace syncopate::experiments
