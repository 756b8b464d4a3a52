// TrippingTransport: an endpoint that breaks a group off at a chosen message: what a test needs to end a job anywhere.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "common/transport/forwarding_transport.h"

namespace syncopate::testing_support {

// When: shared by the endpoints that count towards it.
struct Trip {
  std::atomic<int> messages_left{0};  // to be received; 0: never
  std::function<void()> trip;         // any thread; once
};

class TrippingTransport final : public ForwardingTransport {
 public:
  // `trip` may be null, and outlives this object.
  TrippingTransport(std::unique_ptr<Transport> inner, Trip* trip)
      : ForwardingTransport(std::move(inner)), trip_(trip) {}

  // The message at which the group is broken off is never seen.
  Result<Message> receive(TimePoint deadline) override {
    Result<Message> message = wrapped().receive(deadline);
    if (!message.ok() || trip_ == nullptr || trip_->messages_left.load() == 0) return message;
    if (trip_->messages_left.fetch_sub(1) != 1) return message;
    trip_->trip();
    return Status::cancelled("tripped");
  }

 private:
  Trip* trip_;
};

}  // namespace syncopate::testing_support
