#include "experiments/cluster/command/relay_protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "common/os/socket_address.h"
#include "common/text/number.h"

namespace syncopate::experiments {
namespace {

constexpr std::string_view kMark = "\nsyncopate relay 2\n";
constexpr char kMessageEnd = '\n';
constexpr int kMostPort = 65535, kMostExitCode = 255, kMostSignal = 64;
constexpr std::int64_t kMostMemory = std::int64_t{1} << 53;  // bytes
constexpr std::int64_t kNone = -1;

enum class Kind : std::uint32_t { kReady = 1, kOutput = 2, kSteps = 3, kClock = 4, kEnd = 5 };

// Hosts have the same order of bytes: their programs are of one fingerprint, and the mark of a file of steps is
// checked.
struct Header {
  Kind kind = Kind::kReady;
  std::uint32_t bytes = 0;
};

void append(std::string& bytes, Kind kind, std::string_view payload) {
  const Header header{kind, static_cast<std::uint32_t>(payload.size())};
  bytes.append(reinterpret_cast<const char*>(&header), sizeof(header));
  bytes.append(payload);
  bytes += kMessageEnd;
}

void append(std::string& bytes, Kind kind, std::span<const std::int64_t> numbers) {
  append(bytes, kind, std::string_view(reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes()));
}

template <std::size_t count>
std::optional<std::array<std::int64_t, count>> numbers_of(std::string_view payload) {
  std::array<std::int64_t, count> numbers;
  if (payload.size() != sizeof(numbers)) return std::nullopt;
  std::memcpy(numbers.data(), payload.data(), sizeof(numbers));
  return numbers;
}

bool is_within(std::int64_t number, std::int64_t least, std::int64_t most) { return least <= number && number <= most; }

TimePoint time_of(std::int64_t nanoseconds) { return TimePoint(Duration(nanoseconds)); }
std::int64_t nanoseconds_of(TimePoint time) { return time.time_since_epoch().count(); }

struct Endpoint {
  std::string address;
  int port = 0;
};

// Reads "10.0.0.7 20123".
std::optional<Endpoint> endpoint_of(std::string_view text) {
  const std::size_t blank = std::min(text.find(' '), text.size());
  Endpoint endpoint{.address = std::string(text.substr(0, blank))};
  const auto port = parse_number<int>(text.substr(std::min(blank + 1, text.size())));
  if (!SocketAddress::of_host(endpoint.address).ok() || !port || !is_within(*port, 1, kMostPort)) {
    return std::nullopt;
  }
  endpoint.port = *port;
  return endpoint;
}

Result<RelayMessage> ready_of(std::string_view payload) {
  const std::optional<Endpoint> endpoint = endpoint_of(payload);
  if (!endpoint) return Status::data_loss("no address and port");
  return RelayMessage(RelayReady{endpoint->address, endpoint->port});
}

Result<RelayMessage> clock_of(std::string_view payload) {
  const auto times = numbers_of<3>(payload);
  if (!times || !std::ranges::all_of(*times, [](std::int64_t time) { return is_within(time, 0, kLatestTime); })) {
    return Status::data_loss("times that cannot be");
  }
  return RelayMessage(RelayClock{time_of((*times)[0]), time_of((*times)[1]), time_of((*times)[2])});
}

Result<RelayMessage> end_of(std::string_view payload) {
  const auto numbers = numbers_of<3>(payload);
  if (!numbers) return Status::data_loss("no end of a program");
  const auto [exit_code, signal, peak_memory] = *numbers;
  const bool has_code = signal == kNone && is_within(exit_code, 0, kMostExitCode);
  const bool has_signal = exit_code == kNone && is_within(signal, 1, kMostSignal);
  if ((!has_code && !has_signal) || !is_within(peak_memory, 0, kMostMemory)) {
    return Status::data_loss("an end that cannot be");
  }
  RelayEnd end{.exit_code = {}, .signal = {}, .peak_memory = peak_memory};
  if (has_code) end.exit_code = static_cast<int>(exit_code);
  if (has_signal) end.signal = static_cast<int>(signal);
  return RelayMessage(end);
}

Result<RelayMessage> message_of(Kind kind, std::string_view payload) {
  switch (kind) {
    case Kind::kReady:
      return ready_of(payload);
    case Kind::kOutput:
      return RelayMessage(RelayOutput{std::string(payload)});
    case Kind::kSteps:
      return RelayMessage(RelaySteps{std::string(payload)});
    case Kind::kClock:
      return clock_of(payload);
    case Kind::kEnd:
      return end_of(payload);
  }
  return Status::data_loss("a message of no known kind");
}

}  // namespace

std::string_view relay_mark() { return kMark; }

void append_message(std::string& bytes, const RelayMessage& message) {
  if (const auto* ready = std::get_if<RelayReady>(&message)) {
    append(bytes, Kind::kReady, fmt::format("{} {}", ready->address, ready->port));
  } else if (const auto* output = std::get_if<RelayOutput>(&message)) {
    append(bytes, Kind::kOutput, output->text);
  } else if (const auto* steps = std::get_if<RelaySteps>(&message)) {
    append(bytes, Kind::kSteps, steps->bytes);
  } else if (const auto* clock = std::get_if<RelayClock>(&message)) {
    append(bytes, Kind::kClock,
           std::array{nanoseconds_of(clock->sent), nanoseconds_of(clock->received), nanoseconds_of(clock->answered)});
  } else if (const auto* end = std::get_if<RelayEnd>(&message)) {
    append(bytes, Kind::kEnd,
           std::array{std::int64_t{end->exit_code.value_or(kNone)}, std::int64_t{end->signal.value_or(kNone)},
                      end->peak_memory});
  }
}

// The end of what is unread may be the beginning of the mark.
void RelayReader::skip_greeting(std::vector<RelayMessage>& messages) {
  const std::size_t mark = unread_.find(kMark);
  has_begun_ = mark != std::string::npos;
  const std::size_t greeting = has_begun_ ? mark : unread_.size() - std::min(unread_.size(), kMark.size() - 1);
  if (greeting > 0) messages.emplace_back(RelayOutput{unread_.substr(0, greeting)});
  unread_.erase(0, greeting + (has_begun_ ? kMark.size() : 0));
}

Result<std::vector<RelayMessage>> RelayReader::read(std::string_view bytes) {
  unread_ += bytes;
  std::vector<RelayMessage> messages;
  if (!has_begun_) skip_greeting(messages);
  if (!has_begun_) return messages;
  std::string_view rest = unread_;
  while (rest.size() >= sizeof(Header)) {
    Header header;
    std::memcpy(&header, rest.data(), sizeof(header));
    if (header.bytes > kMostRelayedBytes) return Status::data_loss("a message is too large");
    const std::size_t whole = sizeof(header) + header.bytes + sizeof(kMessageEnd);
    if (rest.size() < whole) break;
    if (rest[whole - 1] != kMessageEnd) return Status::data_loss("a message without an end");
    SYNCOPATE_ASSIGN_OR_RETURN(RelayMessage message,
                               message_of(header.kind, rest.substr(sizeof(header), header.bytes)));
    messages.push_back(std::move(message));
    rest.remove_prefix(whole);
  }
  unread_.erase(0, unread_.size() - rest.size());
  return messages;
}

std::string to_line(const RelayOrder& order) {
  if (const auto* question = std::get_if<RelayQuestion>(&order)) {
    return fmt::format("clock {}\n", nanoseconds_of(question->sent));
  }
  if (const auto* start = std::get_if<RelayStart>(&order)) {
    return fmt::format("start {} {}\n", start->address, start->port);
  }
  return "interrupt\n";
}

Result<RelayOrder> parse_order(std::string_view line) {
  constexpr std::string_view kClock = "clock ", kStart = "start ";
  if (line == "interrupt") return RelayOrder(RelayInterrupt());
  if (line.starts_with(kClock)) {
    const auto sent = parse_number<std::int64_t>(line.substr(kClock.size()));
    if (sent && is_within(*sent, 0, kLatestTime)) return RelayOrder(RelayQuestion{time_of(*sent)});
  }
  if (line.starts_with(kStart)) {
    const std::optional<Endpoint> endpoint = endpoint_of(line.substr(kStart.size()));
    if (endpoint) return RelayOrder(RelayStart{endpoint->address, endpoint->port});
  }
  return Status::data_loss("not a line for a relay");
}

}  // namespace syncopate::experiments
