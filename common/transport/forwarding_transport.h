// ForwardingTransport: what a transport is made of that wraps another one, which carries the messages. Everything is
// passed on as it is; a wrapper overrides what it changes.
#pragma once

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "common/transport/transport.h"

namespace syncopate {

// What a wrapper tells its like on the other side goes before the header, as bytes: all members are processes of the
// same program on the same kind of machine. Envelopes together: at most kMaxEnvelopeBytes.
template <typename Envelope>
requires std::is_trivially_copyable_v<Envelope> std::string in_envelope(const Envelope& envelope,
                                                                        std::string_view header) {
  std::string bytes(sizeof(envelope) + header.size(), '\0');
  std::memcpy(bytes.data(), &envelope, sizeof(envelope));
  header.copy(bytes.data() + sizeof(envelope), header.size());
  return bytes;
}
// Takes it off again; none, and the message stays as it is, if it is too short to have one.
template <typename Envelope>
requires std::is_trivially_copyable_v<Envelope> std::optional<Envelope> take_envelope(Message& message) {
  Envelope envelope;
  if (message.header().size() < sizeof(envelope)) return std::nullopt;
  std::memcpy(&envelope, message.header().data(), sizeof(envelope));
  message = std::move(message).without(sizeof(envelope));
  return envelope;
}

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
