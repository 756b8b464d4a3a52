#include "worker/stragglers.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "common/hash.h"
#include "common/random.h"
#include "common/text/number.h"
#include "common/text/quantity.h"

namespace syncopate::worker {
namespace {

constexpr double kLargestFactor = 1000;
constexpr double kLongestMs = 3600e3;
// A drawn delay is ten times its mean or more in one step of 22000 (e^-10).
constexpr double kMeansWithinLongest = 10;

Duration milliseconds(double value) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::milli>(value));
}

// The text before the next `separator`, which is taken off `rest` with it.
std::string_view take_until(char separator, std::string_view& rest) {
  const std::size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view head = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return head;
}

template <typename T>
std::optional<T> number_of(std::string_view text, T low, T high) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [parsed_to, error] = std::from_chars(text.data(), end, value);
  const bool is_number = error == std::errc() && parsed_to == end && !text.empty();
  return is_number && value >= low && value <= high ? std::optional(value) : std::nullopt;
}

// Milliseconds, also from a time with its unit.
std::optional<double> milliseconds_of(std::string_view text) {
  const std::optional<double> seconds = parse_time(text);
  // 1001ms are 1.001 s, and these are 1000.9999999999999 ms again, but for the nanoseconds that are meant.
  const std::optional<double> found = seconds ? std::round(*seconds * 1e9) / 1e6 : parse_number<double>(text);
  return found && *found >= 0 && *found <= kLongestMs ? found : std::nullopt;
}

}  // namespace

Duration Slowdown::delay(Duration compute, Duration longest) const {
  const Duration whole = extra + std::chrono::duration_cast<Duration>(stretch * compute);
  return std::clamp(whole, Duration::zero(), longest);
}

std::optional<Stragglers::Entry> Stragglers::parse_entry(std::string_view text) {
  Entry entry;
  if (const std::string_view who = take_until(':', text); who != "all") {
    entry.worker = number_of(who, 0, 1 << 20);
    if (!entry.worker) return std::nullopt;
  }
  if (text.starts_with('p')) {
    const std::optional<double> probability = number_of(take_until(':', text).substr(1), 0.0, 1.0);
    if (!probability || *probability == 0) return std::nullopt;
    entry.probability = *probability;
  }
  std::optional<double> amount;
  if (text.ends_with('x')) {
    entry.kind = Kind::kFactor;
    amount = number_of(text.substr(0, text.size() - 1), 1.0, kLargestFactor);
    if (amount == 1.0) return std::nullopt;
  } else if (text.starts_with('+')) {
    entry.kind = Kind::kFixed;
    amount = milliseconds_of(text.substr(1));
  } else if (constexpr std::string_view kExp = "exp:"; text.starts_with(kExp)) {
    entry.kind = Kind::kExponential;
    amount = milliseconds_of(text.substr(kExp.size()));
  }
  if (!amount || *amount == 0) return std::nullopt;
  entry.amount = *amount;
  return entry;
}

Result<Stragglers> Stragglers::parse(std::string_view text) {
  Stragglers stragglers;
  while (!text.empty()) {
    const bool goes_on = text.find(',') != std::string_view::npos;
    const std::string_view item = take_until(',', text);
    const std::optional<Entry> entry = parse_entry(item);
    if (!entry || (goes_on && text.empty())) {
      return Status::invalid_argument(
          fmt::format("'{}' must be a rank or all, then :FACTORx (above 1 to {}), :+MS or :exp:MS (above 0 to "
                      "{}, or a time as 50ms), or one of these behind :pP (P above 0 to 1), as in 3:4x,all:p0.1:+50",
                      entry ? text : item, kLargestFactor, kLongestMs));
    }
    stragglers.entries_.push_back(*entry);
  }
  return stragglers;
}

std::string Stragglers::text_of(const Entry& entry) {
  std::string text = entry.worker ? fmt::format("{}:", *entry.worker) : "all:";
  if (entry.probability < 1) text += fmt::format("p{}:", entry.probability);
  switch (entry.kind) {
    case Kind::kFactor:
      return text + fmt::format("{}x", entry.amount);
    case Kind::kFixed:
      return text + fmt::format("+{}", entry.amount);
    case Kind::kExponential:
      return text + fmt::format("exp:{}", entry.amount);
  }
  return text;
}

std::string Stragglers::to_string() const {
  std::string text;
  for (const Entry& entry : entries_) text += (text.empty() ? "" : ",") + text_of(entry);
  return text;
}

bool Stragglers::draws() const {
  return std::ranges::any_of(
      entries_, [](const Entry& entry) { return entry.kind == Kind::kExponential || entry.probability < 1; });
}

bool Stragglers::slows(int worker) const {
  return std::ranges::any_of(entries_, [&](const Entry& entry) { return entry.concerns(worker); });
}

Status Stragglers::check(int workers, Duration longest) const {
  const double longest_ms = seconds(longest) * 1e3;
  for (const Entry& entry : entries_) {
    if (entry.worker && *entry.worker >= workers) {
      return Status::invalid_argument(
          fmt::format("{} names worker {}; there are workers 0 to {}", text_of(entry), *entry.worker, workers - 1));
    }
    if (entry.kind == Kind::kExponential && entry.amount * kMeansWithinLongest > longest_ms) {
      return Status::invalid_argument(fmt::format("{}: the mean must be {} ms or less, a twentieth of --timeout",
                                                  text_of(entry), longest_ms / kMeansWithinLongest));
    }
  }
  for (int worker = 0; worker < workers; ++worker) {
    double fixed = 0;
    for (const Entry& entry : entries_) {
      if (entry.concerns(worker) && entry.kind == Kind::kFixed) fixed += entry.amount;
    }
    if (fixed <= longest_ms) continue;
    return Status::invalid_argument(
        fmt::format("delays worker {} by {} ms a step; {} ms, half of --timeout, is the most, since others wait "
                    "for it meanwhile",
                    worker, fixed, longest_ms));
  }
  return {};
}

Slowdown Stragglers::at(std::uint64_t seed, int worker, std::int64_t step) const {
  Slowdown slowdown;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    if (!entry.concerns(worker)) continue;
    Fnv stream;
    stream.add("straggler");
    stream.add(static_cast<std::uint64_t>(worker));
    stream.add(static_cast<std::uint64_t>(step));
    stream.add(i);
    Random random(seed, stream.value());
    if (random.uniform() >= entry.probability) continue;
    switch (entry.kind) {
      case Kind::kFactor:
        slowdown.stretch += entry.amount - 1;
        break;
      case Kind::kFixed:
        slowdown.extra += milliseconds(entry.amount);
        break;
      case Kind::kExponential:
        slowdown.extra += milliseconds(-entry.amount * std::log(1 - random.uniform()));
        break;
    }
  }
  return slowdown;
}

}  // namespace syncopate::worker
