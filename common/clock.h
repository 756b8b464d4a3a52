// Clock: the only source of time. Code that waits or measures receives a Clock, so that tests can control it. Dates of
// the calendar are for names and records.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace syncopate {

using Duration = std::chrono::nanoseconds;
// Monotonic time; the same for all processes of one host, so that their time stamps can be compared.
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;
// The latest time, in nanoseconds, that is believed of what comes from elsewhere: 73 years after a host began, so that
// three can be added and subtracted.
inline constexpr std::int64_t kLatestTime = std::int64_t{1} << 61;

inline double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }
inline double milliseconds(Duration duration) { return std::chrono::duration<double, std::milli>(duration).count(); }
inline double microseconds(Duration duration) { return std::chrono::duration<double, std::micro>(duration).count(); }
inline Duration from_seconds(double value) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(value));
}

// What a process does with bytes besides sending them: adding others' up, an optimizer's update of as many weights, and
// what codecs do with as many values before encoding or after decoding.
enum class Processing { kSum, kUpdate, kEncode, kDecode };

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
  // The caller has just processed this many bytes. Real time has passed with it; virtual time may do so now.
  virtual void processed(Processing /*what*/, std::size_t /*bytes*/) const {}
};

class SteadyClock final : public Clock {
 public:
  TimePoint now() const override { return std::chrono::steady_clock::now(); }
};

// A clock that stands still until advance() is called.
class ManualClock final : public Clock {
 public:
  TimePoint now() const override { return now_; }
  void advance(Duration by) { now_ += by; }

 private:
  TimePoint now_{};
};

// Returns the calendar's date and time, for names and records only: "20261120-135501" in UTC.
std::string calendar_stamp();

// Returns "2026-11-20 13:55:01 UTC" for "20261120-135501", which is calendar_stamp()'s form.
std::string calendar_text(const std::string& stamp);

}  // namespace syncopate
