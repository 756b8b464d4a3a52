// ScriptTransport: an endpoint that receives what a script says and keeps what it sends: the whole wire of a driver,
// without threads, peers or time. When the script is at its end, the endpoint is interrupted.
#pragma once

#include <functional>
#include <list>
#include <string>
#include <vector>

#include "common/os/aligned_buffer.h"
#include "common/transport/transport.h"

namespace syncopate::fuzz {

class ScriptTransport final : public Transport {
 public:
  struct Line {
    int from = 0;
    std::string header;
    std::vector<std::byte> payload;
  };
  struct Sent {
    int to = 0;
    std::string header;
    std::string payload;
    bool operator==(const Sent&) const = default;
  };

  ScriptTransport(int rank, int size, std::vector<Line> script);

  // Called before the line `index` is received, and once more at the end of the script.
  void before_each(std::function<void(std::size_t index)> call) { before_each_ = std::move(call); }
  const std::vector<Sent>& sent() const { return sent_; }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const char* name() const override { return "script"; }
  Result<std::span<std::byte>> allocate(std::size_t bytes) override;
  Status send(int peer, std::string_view header, std::span<const std::byte> payload, PendingSends* pending,
              TimePoint deadline) override;
  Result<Message> receive(TimePoint deadline) override;
  Status wait(const PendingSends&, TimePoint) override { return {}; }
  void progress() override {}
  void interrupt() override {}
  TransportCounters counters() const override { return {}; }

 private:
  const int rank_, size_;
  const std::vector<Line> script_;
  std::size_t next_ = 0;
  std::function<void(std::size_t)> before_each_;
  std::vector<Sent> sent_;
  std::list<AlignedBuffer> memory_;
};

}  // namespace syncopate::fuzz
