#include "common/clock.h"

#include <fmt/chrono.h>

namespace syncopate {

std::string calendar_stamp() {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return fmt::format("{:%Y%m%d-%H%M%S}", fmt::gmtime(now));
}

}  // namespace syncopate
