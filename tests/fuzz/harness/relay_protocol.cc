// What a relay, perhaps on another host, sends of a program of a person's own, and the lines that it takes.
#include "experiments/cluster/command/relay_protocol.h"

#include "tests/fuzz/harness.h"
#include "tests/fuzz/input.h"

namespace syncopate::fuzz {
namespace {

using namespace experiments;  // NOLINT(google-build-using-namespace): a harness of one file

bool can_be(TimePoint time) { return time >= TimePoint() && time.time_since_epoch().count() <= kLatestTime; }

void check(const RelayMessage& message) {
  if (const auto* ready = std::get_if<RelayReady>(&message)) {
    require(ready->port > 0 && ready->port <= 65535, "a port can be listened at");
    require(parse_order("start " + ready->address + " 1").ok(), "an address can be passed on");
  } else if (const auto* clock = std::get_if<RelayClock>(&message)) {
    require(can_be(clock->sent) && can_be(clock->received) && can_be(clock->answered), "times can be calculated with");
  } else if (const auto* end = std::get_if<RelayEnd>(&message)) {
    require(end->exit_code.has_value() != end->signal.has_value(), "a program ends in one way");
  }
}

const Harness relay_protocol("relay_protocol", [](Bytes bytes) {
  Input input(bytes);
  // As lines, and as a stream in two pieces, with its mark or without.
  const Result<RelayOrder> order = parse_order(text_of(bytes));
  if (order.ok()) {
    const std::string line = to_line(*order);
    require(parse_order(std::string_view(line).substr(0, line.size() - 1)).ok(), "a line comes back");
  }
  RelayReader reader;
  if (input.coin()) require(reader.read(relay_mark()).ok(), "a relay may begin");
  const std::string first = string_of(input.bytes(bytes.size() / 2));
  for (const std::string& piece : {first, string_of(input.rest())}) {
    const Result<std::vector<RelayMessage>> messages = reader.read(piece);
    if (!messages.ok()) {
      require(messages.status().code() == Code::kDataLoss, "what no relay sends is lost data");
      return;
    }
    for (const RelayMessage& message : *messages) check(message);
  }
});

}  // namespace
}  // namespace syncopate::fuzz
