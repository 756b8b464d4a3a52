#include "common/transport/link_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>
#include <span>

#include "common/text/quantity.h"

namespace syncopate {
namespace {

constexpr std::size_t kSegmentBytes = 1448;
constexpr std::size_t kFramingBytes = 90;

struct Unit {
  std::string_view name;
  double value;
};

// The largest first.
constexpr Unit kRates[] = {{"gbit", 1e9}, {"mbit", 1e6}, {"kbit", 1e3}};  // bits a second
constexpr Unit kTimes[] = {{"ms", 1e6}, {"us", 1e3}};                     // nanoseconds
constexpr double kLeastRate = 1e3, kMostRate = 1e13, kLeastDelay = 1e3, kMostDelay = 1e10;

// Returns the rounded quantity, unless it is none or out of range; NaN is, too.
std::optional<std::int64_t> rounded(std::optional<double> quantity, double least, double most) {
  return quantity && *quantity >= least && *quantity <= most ? std::optional(std::llround(*quantity)) : std::nullopt;
}

std::string quantity(double value, std::span<const Unit> units) {
  const auto fits = [&](const Unit& unit) { return value >= unit.value; };
  const auto unit = std::ranges::find_if(units, fits);
  const Unit& taken = unit == units.end() ? units.back() : *unit;
  return fmt::format("{}{}", value / taken.value, taken.name);
}

}  // namespace

const char* LinkShape::forms() {
  return "RATE or RATE+DELAY, as in 1gbit, 10Gb/s or 100mbit+5ms: 1kbit to 10tbit, 1us to 10s";
}

Result<LinkShape> LinkShape::parse(std::string_view text) {
  const std::size_t plus = text.find('+');
  const bool has_delay = plus != std::string_view::npos;
  const auto rate = rounded(parse_bits_per_second(text.substr(0, plus)), kLeastRate, kMostRate);
  std::optional<std::int64_t> delay = 0;
  if (has_delay) {
    std::string delay_text(text.substr(plus + 1));
    std::ranges::transform(delay_text, delay_text.begin(), [](unsigned char c) { return std::tolower(c); });
    const std::optional<double> seconds = parse_time(delay_text);
    delay = rounded(seconds ? std::optional(*seconds * 1e9) : std::nullopt, kLeastDelay, kMostDelay);
  }
  if (!rate || !delay) return Status::invalid_argument(fmt::format("'{}' must be {}", text, forms()));
  return LinkShape{.bits_per_second = *rate, .delay = Duration(*delay)};
}

std::string LinkShape::to_string() const {
  const std::string rate = quantity(static_cast<double>(bits_per_second), kRates);
  return delay == Duration::zero() ? rate : rate + "+" + quantity(static_cast<double>(delay.count()), kTimes);
}

std::string LinkShape::describe(std::string_view owner) const {
  constexpr Unit kNames[] = {{" Tb/s", 1e12}, {" Gb/s", 1e9}, {" Mb/s", 1e6}, {" kb/s", 1e3}};
  constexpr Unit kTimeNames[] = {{" ms", 1e6}, {" us", 1e3}};
  std::string text = fmt::format("{} each way {}", quantity(static_cast<double>(bits_per_second), kNames), owner);
  if (delay > Duration::zero())
    text += fmt::format(", {} one way", quantity(static_cast<double>(delay.count()), kTimeNames));
  return text;
}

Duration LinkShape::time_of(std::size_t message_bytes) const {
  const double bits = 8.0 * static_cast<double>(bytes_on_wire(message_bytes));
  return Duration(std::llround(1e9 * bits / static_cast<double>(bits_per_second)));
}

double LinkShape::payload_bytes_per_second() const {
  constexpr double kPayloadPart = static_cast<double>(kSegmentBytes) / (kSegmentBytes + kFramingBytes);
  return static_cast<double>(bits_per_second) / 8 * kPayloadPart;
}

std::size_t bytes_on_wire(std::size_t message_bytes) {
  const std::size_t segments = std::max<std::size_t>(1, (message_bytes + kSegmentBytes - 1) / kSegmentBytes);
  return message_bytes + segments * kFramingBytes;
}

}  // namespace syncopate
