// SharedWork: the batches of a worker that draws them from the job's queue (coordinator/batch_queue.h).
//
// It draws as many at once as it trains in about 50 ms, and draws again once a quarter of them is trained, so that the
// answer arrives before the last one is trained, also on a busy machine. A worker with short steps does not wait for
// the queue, and one with steps longer than that holds a single batch. The compute thread does all of it; a batch
// source prepares the batches that it has drawn.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>

#include "common/activity.h"
#include "common/clock.h"
#include "experiments/cluster/control/control_client.h"
#include "worker/batch_source.h"
#include "worker/work.h"

namespace syncopate::experiments {

class SharedWork final : public worker::Work {
 public:
  // The connection to the queue, as in ControlClient.
  struct Queue {
    std::function<void(const ControlClient::BatchRequest& request)> request;
    // Returns none if the batches have not arrived yet; with `wait`, it waits for them instead.
    std::function<Result<std::optional<BatchRange>>(bool wait)> take;
  };

  // `batches` goes by orders; all outlive this object.
  SharedWork(Queue queue, worker::BatchSource& batches, const Clock& clock, Activity& activity)
      : queue_(std::move(queue)), batches_(batches), clock_(clock), activity_(activity) {}

  // Keeps what was drawn before, in another membership epoch, without the batch of a step that has been finished since.
  Status begin(std::int64_t first_step) override;
  Result<std::optional<std::int64_t>> next(std::int64_t step) override;

  // Returns the number of the batch that next() has returned last.
  std::int64_t position() const { return held_.empty() ? 0 : held_.front(); }

  // Training goes back to a checkpoint: what was drawn is given up.
  void go_back();

 private:
  void request();
  Status take(bool wait);
  std::int64_t wanted() const;

  const Queue queue_;
  worker::BatchSource& batches_;
  const Clock& clock_;
  Activity& activity_;

  std::deque<std::int64_t> held_;      // numbers, from the batch that is being trained or is next
  std::optional<std::int64_t> taken_;  // the step in which the first of them is trained
  bool anew_ = true;                   // no request has been made in this membership epoch
  bool under_way_ = false;             // a request is outstanding
  bool over_ = false;                  // there are no more batches
  std::optional<TimePoint> step_begin_;
  Duration step_time_{};         // recent mean
  std::int64_t last_drawn_ = 0;  // number of batches
};

}  // namespace syncopate::experiments
