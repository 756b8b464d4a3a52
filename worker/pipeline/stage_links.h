// StageLinks: a stage's messages to the other stages of its pipeline, over one endpoint. A send copies and does not
// wait; a receive waits, with a deadline, until the message is there.
//
// Between two stages messages of one kind have one order, which both know; each is numbered, so that one that the wire
// repeats is dropped, and the loss of one is seen. One thread; it is the trainer's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/status.h"
#include "common/transport/transport.h"
#include "worker/pass_costs.h"

namespace syncopate::worker {

enum class StageMessage : std::uint32_t {
  kActivations,     // to the stage behind, of a microbatch
  kGradient,        // to the stage before, of a microbatch's activations
  kSharedGradient,  // to a tensor's owner, of a step (SharedTensor)
  kSharedWeights,   // to its borrower
  kOwnWeights,      // to the first stage, where all weights are wanted
};
inline constexpr std::size_t kStageMessages = 5;

struct StageLinksOptions {
  std::vector<int> workers;                     // by stage: for messages to people
  Duration timeout = std::chrono::seconds(30);  // for each wait
  Tracer* tracer = nullptr;                     // records waits, if set; must outlive the links
};

class StageLinks {
 public:
  // The endpoint's ranks are the stages. It, and the clock, must outlive the links.
  StageLinks(Transport& transport, StageLinksOptions options, const Clock& clock);

  int stage() const { return transport_.rank(); }

  // What the calls cost: waits, and bytes of payload.
  PassCosts& costs() { return costs_; }

  // Sends the values, which may be changed at once. After the first failure nothing is sent or received any more: it is
  // returned by each call, and by status().
  Status send(int stage, StageMessage kind, std::span<const float> values);
  // Waits for the next message of that kind from that stage, which must be of as many values. The failure says which
  // worker was waited for.
  Status receive(int stage, StageMessage kind, std::span<float> values);
  // Waits for the next one, and drops it.
  Status discard(int stage, StageMessage kind);
  // Lets the wire go on with what has been sent.
  void progress();
  // Returns once all that was sent has left this process, as far as the wire says.
  Status flush();

  const Status& status() const { return status_; }
  // Messages that came again, or were none of this pipeline's.
  std::int64_t dropped() const { return dropped_; }

 private:
  struct Header {
    StageMessage kind{};
    std::uint32_t number = 0;  // of its kind, from this stage to that one
  };
  // Memory of the transport, and whether it is still being read.
  struct Buffer {
    std::span<std::byte> memory;
    PendingSends pending;
  };

  TimePoint deadline() const { return clock_.now() + options_.timeout; }
  std::string of_worker(int stage) const;
  Status send_now(int stage, StageMessage kind, std::span<const float> values);
  using ReadPayload = std::function<Status(std::span<const std::byte>)>;
  // Waits for the next message of that kind, and has its payload read.
  Status take_next(int stage, StageMessage kind, const ReadPayload& read);
  Status take_now(int stage, StageMessage kind, const ReadPayload& read);
  // Returns the index() of a message that has come in its turn; none if it is to be dropped.
  Result<std::optional<std::size_t>> place_of(const Message& message);
  // Returns memory of the transport that nobody reads.
  Result<Buffer*> buffer_of(std::size_t bytes);
  static std::size_t index(int stage, StageMessage kind) {
    return static_cast<std::size_t>(stage) * kStageMessages + static_cast<std::size_t>(kind);
  }

  Transport& transport_;
  const StageLinksOptions options_;
  const Clock& clock_;
  PassCosts costs_;
  std::vector<std::uint32_t> sent_, arrived_;             // by index()
  std::vector<std::deque<std::vector<std::byte>>> kept_;  // by index(): payloads that nobody has asked for yet
  std::deque<Buffer> buffers_;                            // their addresses stay
  std::int64_t dropped_ = 0;
  Status status_;
};

}  // namespace syncopate::worker
