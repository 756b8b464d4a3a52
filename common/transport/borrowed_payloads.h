// BorrowedPayloads: the payloads that ZeroMQ still reads from the callers' memory.
#pragma once

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <span>
#include <vector>
#include <zmq.hpp>

#include "common/clock.h"
#include "common/transport/transport.h"

namespace syncopate {

// Tracks these payloads. ZeroMQ's I/O threads report here when they have released one. It must be created before these
// threads are.
class BorrowedPayloads {
 public:
  BorrowedPayloads() {
    for (Loan& loan : loans_) {
      loan.lender = this;
      free_.push_back(&loan);
    }
  }

  // Returns a message that refers to `payload` in place, counted in `pending`; a copy if too many are loaned already.
  zmq::message_t borrow(std::span<const std::byte> payload, const PendingSends::Counter& pending) {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return zmq::message_t(payload.data(), payload.size());
    Loan* const loan = free_.back();
    free_.pop_back();
    loan->pending = pending;
    pending->fetch_add(1, std::memory_order_relaxed);
    return zmq::message_t(const_cast<std::byte*>(payload.data()), payload.size(), let_go, loan);
  }

  // Returns when `pending` counts nothing, or at `time`.
  void wait_until(const PendingSends& pending, TimePoint time) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, time, [&] { return pending.none(); });
  }

 private:
  struct Loan {
    BorrowedPayloads* lender = nullptr;
    PendingSends::Counter pending;  // guarded by the lender's mutex
  };

  // Called by ZeroMQ, on one of its own threads.
  static void let_go(void* /*payload*/, void* hint) {
    Loan& loan = *static_cast<Loan*>(hint);
    BorrowedPayloads& lender = *loan.lender;
    const std::lock_guard lock(lender.mutex_);
    loan.pending->fetch_sub(1, std::memory_order_release);
    loan.pending.reset();
    lender.free_.push_back(&loan);
    lender.changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<Loan, 1024> loans_;
  std::vector<Loan*> free_;  // of loans_
};

}  // namespace syncopate
