#include "allreduce/collective/communication_thread.h"

#include "common/os/flush_denormals.h"

namespace syncopate::allreduce {

CommunicationThread::CommunicationThread() : thread_([this](const std::stop_token& stop) { loop(stop); }) {}

CommunicationThread::~CommunicationThread() {
  thread_.request_stop();
  submitted_.notify_all();
}

std::uint64_t CommunicationThread::submit(std::function<void()> work) {
  std::uint64_t ticket = 0;
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
    ticket = ++submitted_count_;
  }
  submitted_.notify_one();
  return ticket;
}

void CommunicationThread::wait_for(std::uint64_t ticket) {
  std::unique_lock lock(mutex_);
  while (done_count_ < ticket) {
    if (!busy_ && !queue_.empty()) {
      do_next(lock);
    } else {
      done_.wait(lock);
    }
  }
  failure_.rethrow();
}

void CommunicationThread::do_next(std::unique_lock<std::mutex>& lock) {
  const std::function<void()> work = std::move(queue_.front());
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
  done_.notify_all();
}

void CommunicationThread::loop(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (true) {
    const bool has_work = submitted_.wait(lock, stop, [&] { return !queue_.empty() && !busy_; });
    if (!has_work || stop.stop_requested()) return;
    do_next(lock);
  }
}

}  // namespace syncopate::allreduce
