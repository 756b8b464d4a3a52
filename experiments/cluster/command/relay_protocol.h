// RelayProtocol: what a relay (relay.h) and run_experiment, perhaps on another host, write to each other. Pure.
//
// The relay writes a mark, and then messages: a header of a kind and a number of bytes, these bytes, and a line break,
// with which a remote shell that passes whole lines on, as srun does, passes them on at once. A shell may have printed
// something before the mark, which counts as output. run_experiment writes lines of text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/clock.h"
#include "common/status.h"

namespace syncopate::experiments {

// The relay is there, and waits for RelayStart.
struct RelayReady {
  std::string address;  // the IPv4 address by which the other hosts reach the relay's
  int port = 0;         // one that is free there
};
// What the program has printed.
struct RelayOutput {
  std::string text;
};
// What it has added to its file of steps (common/step_file.h).
struct RelaySteps {
  std::string bytes;
};
// The answer to a RelayQuestion; all but `sent` by the clock of the relay's host.
struct RelayClock {
  TimePoint sent{}, received{}, answered{};
};
// The program has ended, by an exit code or by a signal; nothing comes after it.
struct RelayEnd {
  std::optional<int> exit_code, signal;
  std::int64_t peak_memory = 0;  // bytes
};
using RelayMessage = std::variant<RelayReady, RelayOutput, RelaySteps, RelayClock, RelayEnd>;

// What the relay writes first.
std::string_view relay_mark();
// Appends a message, whose text has at most kMostRelayedBytes.
inline constexpr std::size_t kMostRelayedBytes = std::size_t{1} << 16;
void append_message(std::string& bytes, const RelayMessage& message);

class RelayReader {
 public:
  // Takes what has come, and returns the whole messages in it. Fails with data loss if it is none of a relay's; after
  // that it must not be used. Keeps one incomplete message at most. Times are 0 to kLatestTime, so that they can be
  // added and subtracted.
  Result<std::vector<RelayMessage>> read(std::string_view bytes);

 private:
  // Takes what stands before the mark.
  void skip_greeting(std::vector<RelayMessage>& messages);

  std::string unread_;
  bool has_begun_ = false;
};

// Asks for the time.
struct RelayQuestion {
  TimePoint sent{};
};
// Lets the program begin; where its rank 0 listens.
struct RelayStart {
  std::string address;
  int port = 0;
};
// Asks the program to end (SIGTERM).
struct RelayInterrupt {};
using RelayOrder = std::variant<RelayQuestion, RelayStart, RelayInterrupt>;

// Returns the line with its line break.
std::string to_line(const RelayOrder& order);
// Reads a line without it. Fails with data loss.
Result<RelayOrder> parse_order(std::string_view line);

}  // namespace syncopate::experiments
