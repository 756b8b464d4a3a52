// ProcessHost: what a process of a run finds where it lives: time and threads, data, the wire to the others, and what
// computing costs. A LocalHost is a process of this machine; in a simulated cluster a host is an actor's.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "allreduce/collective/direct_collective.h"
#include "allreduce/collective/schedule_collective.h"
#include "allreduce/schedule/cost_model.h"
#include "common/rendezvous.h"
#include "common/status.h"
#include "common/threads.h"
#include "common/transport/make_transport.h"
#include "common/transport/shaped_transport.h"
#include "experiments/cluster/process/model_part.h"
#include "experiments/config/resolved_run.h"
#include "worker/data/open_dataset.h"
#include "worker/model.h"
#include "worker/work.h"

namespace syncopate::experiments {

// What a worker trains where that is not the run's to say: a program of the person's own computes its gradients.
class OwnTraining : public worker::Model, public worker::Work {
 public:
  virtual double learning_rate() const = 0;  // of the step that next() has returned
};

class ProcessHost {
 public:
  virtual ~ProcessHost() = default;

  // The threads of the process; their clock is the process's.
  virtual Threads& threads() = 0;
  const Clock& clock() { return threads().clock(); }
  // Returns whether what computing costs is processors' time of this machine, and not virtual time.
  virtual bool computes_here() const = 0;

  // Opens the run's data, which some hosts share between processes. Nobody changes it.
  virtual Result<std::shared_ptr<const worker::DatasetPair>> open_data(const RunSettings& config) = 0;

  // Connects the process's bare endpoint with all others of its group.
  virtual Result<std::unique_ptr<Transport>> connect(const ResolvedRun& config, const TransportOptions& options,
                                                     Rendezvous& rendezvous, TimePoint deadline) = 0;
  // Connects it with others of its host, in memory. Like make_direct_collective().
  virtual Result<std::unique_ptr<allreduce::DirectCollective>> connect_memory(const TransportOptions& options,
                                                                              Rendezvous& rendezvous,
                                                                              TimePoint deadline,
                                                                              std::vector<int> called) = 0;
  // Returns the emulated link through which all of the process's endpoints send, the same at each call; null if there
  // is none.
  virtual std::shared_ptr<ProcessLink> make_link(const ResolvedRun& config) = 0;
  // Returns how fast what connects the run's workers is, if that is known; `wire` names everything that it depends on.
  struct KnownLinks {
    allreduce::GroupLinks links;
    const char* source = "";    // for a person: where it is known from
    double bytes_for_each = 1;  // bytes on the wire that a byte of this process's payloads stands for
  };
  virtual std::optional<KnownLinks> known_links(const std::string& wire) = 0;
  // Keeps what has been measured for later runs.
  virtual Status keep_links(const std::string& wire, const allreduce::GroupLinks& links) = 0;

  // Returns what carries out the schedules of this connected group in place of its transports; null for nothing.
  virtual allreduce::SchedulePlayer* schedule_player(const ResolvedRun& /*config*/, const std::string& /*group*/) {
    return nullptr;
  }

  // Returns the run's model, which takes the time that computing takes here. The backend outlives it. Fails as
  // worker::make_model() does.
  virtual Result<std::unique_ptr<worker::Model>> make_model(const ResolvedRun& config, const worker::SampleForm& form,
                                                            worker::ComputeBackend& backend) = 0;
  // Returns the part of it that worker `rank` of a run trains that divides its model. The same holds.
  virtual Result<OwnedPart> make_part(const ResolvedRun& config, int rank, const worker::SampleForm& form,
                                      worker::ComputeBackend& backend) = 0;
  // The model that make_model() has made, if it also says what is trained with it; else null.
  virtual OwnTraining* own_training() { return nullptr; }
};

}  // namespace syncopate::experiments
