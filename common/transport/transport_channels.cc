#include "common/transport/transport_channels.h"

#include <fmt/format.h>

#include <cassert>
#include <optional>
#include <utility>

#include "common/transport/forwarding_transport.h"

namespace syncopate {

class TransportChannels::Channel final : public Transport {
 public:
  Channel(TransportChannels& channels, int number) : channels_(channels), number_(static_cast<std::uint8_t>(number)) {}

  int rank() const override { return inner().rank(); }
  int size() const override { return inner().size(); }
  const char* name() const override { return inner().name(); }
  Result<std::span<std::byte>> allocate(std::size_t bytes) override { return inner().allocate(bytes); }
  Status send(int peer, std::string_view header, std::span<const std::byte> payload, PendingSends* pending,
              TimePoint deadline) override {
    if (header.size() + sizeof(number_) > kMaxHeaderBytes) {
      return Status::invalid_argument(fmt::format("a header of {} bytes: must be {} at most over a channel",
                                                  header.size(), kMaxHeaderBytes - sizeof(number_)));
    }
    return inner().send(peer, in_envelope(number_, header), payload, pending, deadline);
  }
  Result<Message> receive(TimePoint deadline) override { return channels_.receive(number_, deadline); }
  Status wait(const PendingSends& pending, TimePoint deadline) override { return inner().wait(pending, deadline); }
  void progress() override { inner().progress(); }
  void interrupt() override { inner().interrupt(); }
  TransportCounters counters() const override {
    TransportCounters counters = inner().counters();
    counters.dropped += channels_.dropped_;
    return counters;
  }

 private:
  Transport& inner() const { return channels_.inner_; }

  TransportChannels& channels_;
  const std::uint8_t number_;
};

TransportChannels::TransportChannels(Transport& inner, int channels)
    : inner_(inner), kept_(static_cast<std::size_t>(channels)) {
  assert(channels >= 1 && channels <= kMostChannels);
  for (int number = 0; number < channels; ++number) channels_.push_back(std::make_unique<Channel>(*this, number));
}

TransportChannels::~TransportChannels() = default;

Transport& TransportChannels::channel(int number) { return *channels_[static_cast<std::size_t>(number)]; }

Result<Message> TransportChannels::receive(std::size_t channel, TimePoint deadline) {
  while (kept_[channel].empty()) {
    Result<Message> message = inner_.receive(deadline);
    if (!message.ok()) return message;
    const std::optional<std::uint8_t> number = take_envelope<std::uint8_t>(*message);
    if (!number || *number >= kept_.size()) {
      ++dropped_;
      continue;
    }
    kept_[*number].push_back(std::move(*message));
  }
  Message message = std::move(kept_[channel].front());
  kept_[channel].pop_front();
  return message;
}

}  // namespace syncopate
