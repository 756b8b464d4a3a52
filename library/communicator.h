// Communicator: sums and broadcasts of tensors that lie anywhere, in the order in which they are asked for, beside the
// thread that asks. Tensors go through memory of the collective, piece by piece: the copies cost less than to have
// tensors live there (a step of a small net, 3 to 6 %).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "allreduce/collective/communication_thread.h"
#include "common/param_layout.h"
#include "common/sync_strategy.h"
#include "library/group.h"

namespace syncopate::library {

class Communicator {
 public:
  // An operation of all ranks; `name` is used once in the group's life.
  static Result<std::unique_ptr<Communicator>> connect(std::shared_ptr<Group> group, const std::string& name);
  ~Communicator();

  // These return a ticket and do not wait. What they are given must stay where it is, and be left alone, until wait()
  // has returned for that ticket. All ranks call them in the same order and with the same number of elements
  // altogether; how these are cut into parts may differ.

  // Leaves scale · (the sum over all ranks) in `parts`. Numbers below 1.2e-38 count as zero.
  std::uint64_t sum(std::vector<std::span<float>> parts, float scale);
  // Copies the root's `bytes` to all ranks.
  std::uint64_t broadcast(std::span<std::byte> bytes, int root);
  // Is done once all ranks have come to it.
  std::uint64_t barrier();

  // Does `work`, an operation of all ranks, on `bytes`, for what the collective can do beside these.
  std::uint64_t run(std::function<Status(allreduce::Collective&)> work, std::size_t bytes = 0);

  // Fails with invalid argument on every rank, naming one, unless all have the same tensors and buckets. Waits for all.
  Status prove_same(const ParamLayout& layout, std::span<const Range> buckets);

  // Returns when the work of `ticket` and all before it has been done, or has failed. After a failure nothing is tried
  // again, and every later call has the same one.
  Status wait(std::uint64_t ticket);
  // Returns the last ticket whose work has been done, or has failed: memory of those up to it is not used any more.
  std::uint64_t done() const { return thread_->done(); }
  // What has not been done fails, as does all that comes later; if all has been done, this does nothing.
  void interrupt();
  // The rank that the failed operation waited for; -1 if unknown.
  int missed();

  // Returns what has been sent and received, and how long the work took, since the last call; nothing else.
  SyncStats take_costs();

  Group& group() const { return *group_; }
  // For the caller's thread while no work is under way.
  allreduce::Collective& collective() const { return *connected_.collective; }

 private:
  Communicator(std::shared_ptr<Group> group, ConnectedCollective connected, std::span<float> staging);

  // `bytes`: that the work is on.
  template <typename Work>
  std::uint64_t submit(Work work, std::size_t bytes = 0);
  Status sum_now(const std::vector<std::span<float>>& parts, float scale);
  Status broadcast_now(std::span<std::byte> bytes, int root);

  const std::shared_ptr<Group> group_;
  ConnectedCollective connected_;
  const std::span<float> staging_;
  std::mutex mutex_;
  Status failure_;               // the first; guarded by mutex_
  std::uint64_t failed_at_ = 0;  // its ticket
  int missed_ = -1;
  Duration worked_{};        // since take_costs; guarded by mutex_
  TransportCounters moved_;  // until now; guarded by mutex_
  TransportCounters taken_;  // until take_costs
  std::uint64_t begun_ = 0;  // tickets; on whichever thread does the work
  std::optional<InterruptedByLoss> interrupted_by_loss_;
  std::unique_ptr<allreduce::CommunicationThread> thread_;  // last: it works on all of the above
};

}  // namespace syncopate::library
