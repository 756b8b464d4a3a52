// SharedWork: the batches of a worker that draws them from the job's queue (coordinator/batch_queue.h).
//
// It draws as many at once as it trains in about 50 ms, and draws again once a quarter of them is trained, so that the
// answer is there before the last one is, also on a busy machine: a worker whose steps are short does not wait for the
// queue, and one whose steps are longer than that holds a single batch. The compute thread does all of it; what it has
// drawn, a batch source prepares.
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
  // The way to the queue, as ControlClient has it.
  struct Queue {
    std::function<void(const ControlClient::BatchRequest& request)> request;
    // None: not here yet; with `wait`, only after a failure.
    std::function<Result<std::optional<BatchRange>>(bool wait)> take;
  };

  // `batches` goes by orders; all outlive this object.
  SharedWork(Queue queue, worker::BatchSource& batches, const Clock& clock, Activity& activity)
      : queue_(std::move(queue)), batches_(batches), clock_(clock), activity_(activity) {}

  // What was drawn before, in another generation, is kept but for the batch of a step that has been finished since.
  Status begin(std::int64_t first_step) override;
  Result<std::optional<std::int64_t>> next(std::int64_t step) override;

  // Of the batch that next() has given last.
  std::int64_t position() const { return held_.empty() ? 0 : held_.front(); }

  // Training goes back to a checkpoint: what was drawn is nobody's.
  void go_back();

 private:
  void request();
  Status take(bool wait);
  std::int64_t wanted() const;

  const Queue queue_;
  worker::BatchSource& batches_;
  const Clock& clock_;
  Activity& activity_;

  std::deque<std::int64_t> held_;      // numbers, from the one that is trained or is next
  std::optional<std::int64_t> taken_;  // the step in which the first of them is trained
  bool anew_ = true;                   // no request has been made in this generation
  bool under_way_ = false;             // a request
  bool over_ = false;                  // there are no more
  std::optional<TimePoint> step_begin_;
  Duration step_time_{};         // of late
  std::int64_t last_drawn_ = 0;  // batches
};

}  // namespace syncopate::experiments
