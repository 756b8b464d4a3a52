// SimulatedHost: what a process of a simulated cluster finds where it lives.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "experiments/cluster/process/process_host.h"
#include "experiments/cluster/simulated/data_plane.h"
#include "experiments/cluster/simulated/phantom.h"
#include "simulation/world.h"

namespace syncopate::experiments {

// Makes what worker `rank` trains, which takes its time by `sleep`. The clock outlives it.
using OwnTrainingMaker =
    std::function<std::unique_ptr<OwnTraining>(int rank, const Clock& clock, std::function<void(Duration)> sleep)>;

// How a run's workers compute.
struct SimulatedCompute {
  ComputeTimes times;
  ProcessingTimes processing = {};
  std::optional<Phantom> phantom = {};  // in place of a model that computes
  OwnTrainingMaker own = {};            // the same; the times are its own

  std::int64_t scale() const { return phantom ? phantom->scale : 1; }
};

class SimulatedHost final : public ProcessHost {
 public:
  // All must outlive it.
  SimulatedHost(simulation::World& world, Threads& threads, DataPlane& plane, const SimulatedCompute& compute,
                std::size_t process, int rank)
      : world_(world), threads_(threads), plane_(plane), compute_(compute), process_(process), rank_(rank) {}

  Threads& threads() override { return threads_; }
  bool computes_here() const override { return false; }
  Result<std::shared_ptr<const worker::DatasetPair>> open_data(const RunSettings& config) override {
    return plane_.open_data(config);
  }
  Result<std::unique_ptr<Transport>> connect(const ResolvedRun&, const TransportOptions& options,
                                             Rendezvous& rendezvous, TimePoint deadline) override {
    return plane_.connect(process_, options, rendezvous, deadline);
  }
  Result<std::unique_ptr<allreduce::DirectCollective>> connect_memory(const TransportOptions& options,
                                                                      Rendezvous& rendezvous, TimePoint deadline,
                                                                      std::vector<int> called) override {
    return plane_.connect_memory(process_, options, rendezvous, deadline, std::move(called));
  }
  // The wire itself has the shape that is asked for.
  std::shared_ptr<ProcessLink> make_link(const ResolvedRun&) override { return nullptr; }
  std::optional<KnownLinks> known_links(const std::string&) override { return plane_.links(); }
  allreduce::SchedulePlayer* schedule_player(const ResolvedRun& config, const std::string& group) override {
    return plane_.schedules_of(config, compute_.processing.sum, group);
  }
  Status keep_links(const std::string&, const allreduce::GroupLinks&) override { return {}; }
  Result<std::unique_ptr<worker::Model>> make_model(const ResolvedRun& config, const worker::SampleForm& form,
                                                    worker::ComputeBackend& backend) override;
  // A cut is by the times that layers take here.
  Result<OwnedPart> make_part(const ResolvedRun& config, int rank, const worker::SampleForm& form,
                              worker::ComputeBackend& backend) override;
  OwnTraining* own_training() override { return own_; }

 private:
  void sleep(Duration duration) { world_.sleep_until(world_.now() + duration); }

  simulation::World& world_;
  Threads& threads_;
  DataPlane& plane_;
  const SimulatedCompute& compute_;
  const std::size_t process_;
  const int rank_;  // in its role
  OwnTraining* own_ = nullptr;
};

}  // namespace syncopate::experiments
