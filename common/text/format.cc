#include "common/text/format.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>

namespace syncopate {

std::string format_count(double value) {
  if (std::abs(value) < 100 && value != std::floor(value)) return fmt::format("{:.1f}", value);
  std::string text = fmt::format("{:.0f}", value);
  const std::size_t first_digit = text.starts_with('-') ? 1 : 0;
  for (std::size_t i = text.size(); i > first_digit + 3; i -= 3) text.insert(i - 3, 1, ',');
  return text;
}

std::string format_bytes(double bytes) {
  if (bytes < 1e3) return fmt::format("{:.0f} B", bytes);
  if (bytes < 1e6) return fmt::format("{:.2f} kB", bytes / 1e3);
  if (bytes < 1e9) return fmt::format("{:.2f} MB", bytes / 1e6);
  return fmt::format("{:.2f} GB", bytes / 1e9);
}

std::string format_duration(double seconds) {
  if (seconds < 9.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

std::string format_ms(double milliseconds) {
  if (milliseconds < 1) return fmt::format("{:.3f}", milliseconds);
  if (milliseconds < 10) return fmt::format("{:.2f}", milliseconds);
  if (milliseconds < 100) return fmt::format("{:.1f}", milliseconds);
  return fmt::format("{:.0f}", milliseconds);
}

}  // namespace syncopate
