// Numbered messages in any order: each is given out once, in its sender's order, and what is kept is bounded.
#include "common/transport/message_order.h"

#include <array>

#include "tests/fuzz/harness.h"
#include "tests/fuzz/input.h"

namespace syncopate::fuzz {
namespace {

constexpr int kPeers = 3;

const Harness message_order("message_order", [](Bytes bytes) {
  Input input(bytes);
  MessageOrder order(kPeers);
  std::array<std::uint64_t, kPeers> due{};
  while (!input.empty()) {
    const auto from = static_cast<int>(input.below(kPeers));
    const std::uint64_t number = due[static_cast<std::size_t>(from)] + input.number();
    const bool taken = order.put(number, Message(from, std::to_string(number), {}, nullptr));
    require(!taken || number - due[static_cast<std::size_t>(from)] <= MessageOrder::kMostAhead,
            "what is too far ahead is not kept");
    while (const std::optional<Message> message = order.take()) {
      std::uint64_t& next = due[static_cast<std::size_t>(message->from())];
      require(message->header() == std::to_string(next), "messages come in their sender's order");
      ++next;
    }
  }
});

}  // namespace
}  // namespace syncopate::fuzz
