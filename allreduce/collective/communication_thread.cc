#include "allreduce/collective/communication_thread.h"

#include "common/os/flush_denormals.h"

namespace syncopate::allreduce {

CommunicationThread::CommunicationThread(Threads& threads, Duration worth_waking)
    : monitor_(threads.make_monitor()),
      worth_waking_(worth_waking),
      thread_(threads.start("communication", [this] { loop(); })) {}

CommunicationThread::~CommunicationThread() {
  {
    const Lock lock(*monitor_);
    ends_ = true;
  }
  monitor_->notify_all();
  thread_.reset();
}

std::uint64_t CommunicationThread::submit(std::function<void()> work, Begin begin) {
  std::uint64_t ticket = 0;
  {
    const Lock lock(*monitor_);
    queue_.push_back({std::move(work), begin});
    ticket = ++submitted_count_;
  }
  if (begin == Begin::kNow) monitor_->notify_all();
  return ticket;
}

void CommunicationThread::wait_for(std::uint64_t ticket, Duration away) {
  Lock lock(*monitor_);
  while (done_count_ < ticket) {
    if (!busy_ && !queue_.empty()) {
      do_next(lock);
    } else {
      ++waiting_;
      monitor_->wait();
      --waiting_;
    }
  }
  // The communication thread has not looked at the queue since.
  if (!queue_.empty() && queue_.front().begin == Begin::kNow && away >= worth_waking_) monitor_->notify_all();
  failure_.rethrow();
}

std::uint64_t CommunicationThread::done() const {
  const Lock lock(*monitor_);
  return done_count_;
}

bool CommunicationThread::has_unfinished() const {
  const Lock lock(*monitor_);
  return done_count_ < submitted_count_;
}

void CommunicationThread::do_next(Lock& lock) {
  const std::function<void()> work = std::move(queue_.front().run);
  queue_.pop_front();
  busy_ = true;
  lock.unlock();
  {
    const FlushDenormals flush;
    failure_.carry(work);
  }
  lock.lock();
  busy_ = false;
  ++done_count_;
  if (waiting_ > 0) monitor_->notify_all();
}

void CommunicationThread::loop() {
  Lock lock(*monitor_);
  while (!ends_) {
    if (busy_ || queue_.empty()) {
      monitor_->wait();
    } else {
      do_next(lock);
    }
  }
}

}  // namespace syncopate::allreduce
