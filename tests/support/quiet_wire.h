// QuietWire: a group in one process, each rank a thread, whose waits end when nothing can happen any more: when every
// rank that has not stopped waits, and nothing that was sent is still to be received. So a test of ranks that die sees
// how far the others come without them, and waits for no deadline.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "common/transport/transport.h"

namespace syncopate::testing_support {

class QuietWire {
 public:
  explicit QuietWire(int size);

  // One a rank, until the wire's end. Deadlines count for nothing: a wait that cannot come to its end returns
  // cancelled.
  Transport& endpoint(int rank) { return *endpoints_[static_cast<std::size_t>(rank)]; }

  // This rank does nothing any more: it has come to its end, or has died. From its own thread.
  void stop(int rank);

 private:
  class Endpoint;
  struct Rank {
    std::uint64_t news = 0;  // what has reached it, or has been let go by others
    bool waits = false;      // and has seen all of it
    bool stopped = false;
  };

  Rank& rank_of(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  std::uint64_t news_of(int rank);
  void tell(int rank);
  // Returns when there is more news for the rank than it has seen; false if there will be none.
  bool wait_for_news(int rank, std::uint64_t seen);
  void end_if_quiet();  // with the mutex held

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Rank> ranks_;
  bool over_ = false;
  std::vector<std::unique_ptr<Transport>> endpoints_;
};

// A rank that dies: after so many messages, sent and received, each call of its transport returns cancelled. To the
// others it is silent, as long as what it wraps is there.
class MortalTransport final : public Transport {
 public:
  // `on_death`, unless null, is called once, from the rank's thread.
  MortalTransport(Transport& inner, std::size_t messages, std::function<void()> on_death = nullptr)
      : inner_(inner), left_(messages), on_death_(std::move(on_death)) {}

  bool died() const { return died_; }

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  const char* name() const override { return inner_.name(); }
  Result<std::span<std::byte>> allocate(std::size_t bytes) override { return inner_.allocate(bytes); }
  Status send(int peer, std::string_view header, std::span<const std::byte> payload, PendingSends* pending,
              TimePoint deadline) override;
  Result<Message> receive(TimePoint deadline) override;
  Status wait(const PendingSends& pending, TimePoint deadline) override;
  void progress() override { inner_.progress(); }
  void interrupt() override { inner_.interrupt(); }
  TransportCounters counters() const override { return inner_.counters(); }

 private:
  // Counts a message; cancelled if it is one too many.
  Status live_on();

  Transport& inner_;
  std::size_t left_;
  std::function<void()> on_death_;
  bool died_ = false;
};

}  // namespace syncopate::testing_support
