#include "experiments/cluster/coordinator/shared_batches.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "experiments/checkpoint/checkpoint.h"
#include "experiments/checkpoint/run_facts.h"

namespace syncopate::experiments {

void SharedBatches::on_request(std::size_t process, const control::BatchRequest& request) {
  const bool is_now = request.membership_epoch() == monitor_.membership().number && monitor_.still_there(process);
  if (!is_now) return;
  const int rank = plan_.processes[process].rank;
  if (request.anew()) {
    const std::vector<std::int64_t> held(request.held().begin(), request.held().end());
    queue_.hold_only(rank, held);
  }
  control::FromCoordinator answer;
  control::BatchLease& lease = *answer.mutable_batch_lease();
  lease.set_number(request.number());
  if (const std::optional<BatchRange> drawn = queue_.draw(rank, request.wanted())) {
    lease.set_begin(drawn->begin);
    lease.set_end(drawn->end);
  }
  control_.send(process, answer);
}

void SharedBatches::go_back_to(const std::string& checkpoint, const std::string& digest) {
  const Result<Checkpoint> opened = Checkpoint::open(checkpoint, {.digest = digest});
  if (opened.ok()) queue_.go_back(batches_done(opened->manifest(), config_));
}

std::string SharedBatches::untrained() const {
  const std::int64_t missing = queue_.batches() - queue_.done();
  if (missing <= 0) return {};
  return fmt::format(
      "{} of the job's {} batches were not trained: whoever had drawn them was lost when no other worker was there any "
      "more",
      missing, queue_.batches());
}

}  // namespace syncopate::experiments
