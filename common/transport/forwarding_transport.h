// ForwardingTransport: the base of transports that wrap another one, which carries the messages. It passes everything
// on unchanged; a wrapper overrides what it changes.
#pragma once

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "common/transport/transport.h"

namespace syncopate {

// A wrapper's data for the wrapper on the other side goes before the header, as bytes: all members are processes of the
// same program on the same kind of machine. All envelopes together have at most kMaxEnvelopeBytes.
template <typename Envelope>
requires std::is_trivially_copyable_v<Envelope> std::string in_envelope(const Envelope& envelope,
                                                                        std::string_view header) {
  std::string bytes(sizeof(envelope) + header.size(), '\0');
  std::memcpy(bytes.data(), &envelope, sizeof(envelope));
  header.copy(bytes.data() + sizeof(envelope), header.size());
  return bytes;
}
// Removes the envelope. Returns none, and leaves the message unchanged, if it is too short to have one.
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
  std::unique_ptr<Transport> inner_;  // must outlive the messages that a wrapper keeps
};

}  // namespace syncopate
