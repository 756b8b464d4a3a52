// Admission: what a process waits for before it does anything: the coordinator's welcome and, if the welcome asks for
// it, the measurement of how far the two clocks are apart.
//
// Any thread may call any method; the control thread reports what has arrived. The contents of the welcome are read
// without a lock, once wait() has returned without an error.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/status.h"
#include "experiments/checkpoint/checkpoint_terms.h"
#include "experiments/cluster/control/control.pb.h"

namespace syncopate::experiments {

class Admission {
 public:
  void on_welcome(const control::Welcome& welcome);
  void on_clocks_compared();
  // The process must stop.
  void on_stop();

  // Fails with cancelled if the process must stop instead.
  Status wait(TimePoint deadline);

  // Valid after wait(). See ControlClient.
  const std::string& config_toml() const { return config_toml_; }
  const std::string& checkpoints() const { return checkpoints_; }
  const CheckpointTerms& checkpoint_terms() const { return checkpoint_terms_; }
  const std::vector<std::int64_t>& announced_steps() const { return announced_steps_; }

 private:
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::string config_toml_;
  std::string checkpoints_;
  CheckpointTerms checkpoint_terms_;
  std::vector<std::int64_t> announced_steps_;
  bool welcomed_ = false;
  bool clocks_compared_ = false;  // as far as the welcome asks for it
  bool stopped_ = false;
};

}  // namespace syncopate::experiments
