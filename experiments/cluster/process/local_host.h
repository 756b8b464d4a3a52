// LocalHost: a process of this machine, with the system's threads, the run's own transport, and computing that takes
// the time it takes.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "experiments/cluster/process/part_of.h"
#include "experiments/cluster/process/process_host.h"

namespace syncopate::experiments {

class LocalHost final : public ProcessHost {
 public:
  Threads& threads() override { return os_threads(); }
  bool computes_here() const override { return true; }
  Result<std::shared_ptr<const worker::DatasetPair>> open_data(const RunSettings& config) override;
  Result<std::unique_ptr<Transport>> connect(const ResolvedRun& config, const TransportOptions& options,
                                             Rendezvous& rendezvous, TimePoint deadline) override;
  Result<std::unique_ptr<allreduce::DirectCollective>> connect_memory(const TransportOptions& options,
                                                                      Rendezvous& rendezvous, TimePoint deadline,
                                                                      std::vector<int> called) override {
    return allreduce::make_direct_collective(options, rendezvous, deadline, std::move(called));
  }
  std::shared_ptr<ProcessLink> make_link(const ResolvedRun& config) override;  // any thread
  std::optional<KnownLinks> known_links(const std::string& wire) override;
  Status keep_links(const std::string& wire, const allreduce::GroupLinks& links) override;
  Result<std::unique_ptr<worker::Model>> make_model(const ResolvedRun& config, const worker::SampleForm& form,
                                                    worker::ComputeBackend& backend) override {
    return worker::make_model(model_spec(config), form, microbatch_samples(config), backend);
  }
  Result<OwnedPart> make_part(const ResolvedRun& config, int rank, const worker::SampleForm& form,
                              worker::ComputeBackend& backend) override {
    return part_of(config, rank, form, backend);
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<ProcessLink> link_;  // guarded by mutex_; null until it is asked for
};

}  // namespace syncopate::experiments
