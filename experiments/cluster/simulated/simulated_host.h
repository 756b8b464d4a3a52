// SimulatedHost: what a process of a simulated cluster finds where it lives.
#pragma once

#include "experiments/cluster/process/process_host.h"
#include "experiments/cluster/simulated/compute_times.h"
#include "experiments/cluster/simulated/data_plane.h"
#include "simulation/world.h"

namespace syncopate::experiments {

class SimulatedHost final : public ProcessHost {
 public:
  // All must outlive it. A worker computes for `times`.
  SimulatedHost(simulation::World& world, Threads& threads, DataPlane& plane, const ComputeTimes& times,
                std::size_t process)
      : world_(world), threads_(threads), plane_(plane), times_(times), process_(process) {}

  Threads& threads() override { return threads_; }
  Result<std::shared_ptr<const worker::DatasetPair>> open_data(const RunSettings& config) override {
    return plane_.open_data(config);
  }
  Result<std::unique_ptr<Transport>> connect(const ResolvedRun&, const TransportOptions& options,
                                             Rendezvous& rendezvous, TimePoint deadline) override {
    return plane_.connect(process_, options, rendezvous, deadline);
  }
  // The wire itself has the shape that is asked for.
  std::shared_ptr<ProcessLink> make_link(const ResolvedRun&) override { return nullptr; }
  std::optional<KnownLink> known_link(const std::string&) override { return plane_.link(); }
  Status keep_link(const std::string&, const allreduce::LinkModel&) override { return {}; }
  std::unique_ptr<worker::Model> timed(std::unique_ptr<worker::Model> model) override {
    return timed_model(std::move(model), times_,
                       [this](Duration duration) { world_.sleep_until(world_.now() + duration); });
  }

 private:
  simulation::World& world_;
  Threads& threads_;
  DataPlane& plane_;
  const ComputeTimes& times_;
  const std::size_t process_;
};

}  // namespace syncopate::experiments
