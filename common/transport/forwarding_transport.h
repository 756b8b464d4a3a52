// ForwardingTransport: what a transport is made of that wraps another one, which carries the messages. Everything is
// passed on as it is; a wrapper overrides what it changes.
#pragma once

#include <memory>
#include <utility>

#include "common/transport/transport.h"

namespace syncopate {

class ForwardingTransport : public Transport {
 public:
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  const char* name() const override { return inner_->name(); }
  Result<std::span<std::byte>> allocate(std::size_t bytes) override { return inner_->allocate(bytes); }
  Status send(int peer, std::string_view header, std::span<const std::byte> payload, PendingSends* pending,
              TimePoint deadline) override {
    return inner_->send(peer, header, payload, pending, deadline);
  }
  Result<Message> receive(TimePoint deadline) override { return inner_->receive(deadline); }
  Status wait(const PendingSends& pending, TimePoint deadline) override { return inner_->wait(pending, deadline); }
  void progress() override { inner_->progress(); }
  void interrupt() override { inner_->interrupt(); }
  TransportCounters counters() const override { return inner_->counters(); }

 protected:
  explicit ForwardingTransport(std::unique_ptr<Transport> inner) : inner_(std::move(inner)) {}

  Transport& wrapped() const { return *inner_; }

 private:
  std::unique_ptr<Transport> inner_;  // outlives what a wrapper keeps of its messages
};

}  // namespace syncopate
