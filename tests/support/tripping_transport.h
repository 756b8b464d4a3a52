// TrippingTransport: an endpoint that breaks a group off at a chosen message: what a test needs to end a job anywhere.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "common/transport/transport.h"

namespace syncopate::testing_support {

// When: shared by the endpoints that count towards it.
struct Trip {
  std::atomic<int> messages_left{0};  // to be received; 0: never
  std::function<void()> trip;         // any thread; once
};

class TrippingTransport final : public Transport {
 public:
  // `trip` may be null, and outlives this object.
  TrippingTransport(std::unique_ptr<Transport> inner, Trip* trip) : inner_(std::move(inner)), trip_(trip) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  const char* name() const override { return inner_->name(); }
  Result<std::span<std::byte>> allocate(std::size_t bytes) override { return inner_->allocate(bytes); }
  Status send(int peer, std::string_view header, std::span<const std::byte> payload, PendingSends* pending,
              TimePoint deadline) override {
    return inner_->send(peer, header, payload, pending, deadline);
  }
  // The message at which the group is broken off is never seen.
  Result<Message> receive(TimePoint deadline) override {
    Result<Message> message = inner_->receive(deadline);
    if (!message.ok() || trip_ == nullptr || trip_->messages_left.load() == 0) return message;
    if (trip_->messages_left.fetch_sub(1) != 1) return message;
    trip_->trip();
    return Status(Code::kCancelled, "tripped");
  }
  Status wait(const PendingSends& pending, TimePoint deadline) override { return inner_->wait(pending, deadline); }
  void progress() override { inner_->progress(); }
  void interrupt() override { inner_->interrupt(); }
  TransportCounters counters() const override { return inner_->counters(); }

 private:
  std::unique_ptr<Transport> inner_;
  Trip* trip_;
};

}  // namespace syncopate::testing_support
