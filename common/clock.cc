#include "common/clock.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace syncopate {

std::string calendar_stamp() {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return fmt::format("{:%Y%m%d-%H%M%S}", fmt::gmtime(now));
}

std::string calendar_text(const std::string& stamp) {
  const auto part = [&](std::size_t begin, std::size_t length) { return stamp.substr(begin, length); };
  return fmt::format("{}-{}-{} {}:{}:{} UTC", part(0, 4), part(4, 2), part(6, 2), part(9, 2), part(11, 2), part(13, 2));
}

}  // namespace syncopate
