#include "tests/software_gpu/settings.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace software_gpu {
namespace {

std::string_view text_of(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? std::string_view() : text;
}

[[noreturn]] void refuse(const char* name, std::string_view text, const char* right) {
  std::fprintf(stderr, "software GPU: %s=%.*s: must be %s\n", name, static_cast<int>(text.size()), text.data(), right);
  std::_Exit(2);
}

template <typename Number>
Number number_of(const char* name, Number otherwise) {
  const std::string_view text = text_of(name);
  if (text.empty()) return otherwise;
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) refuse(name, text, "a whole number");
  return number;
}

Order order_of(const char* name) {
  const std::string_view text = text_of(name);
  if (text.empty() || text == "drawn") return Order::kDrawn;
  if (text == "first") return Order::kFirst;
  if (text == "last") return Order::kLast;
  refuse(name, text, "drawn, first or last");
}

Settings read() {
  Settings settings;
  settings.devices = number_of("SOFTWARE_GPU_DEVICES", settings.devices);
  settings.seed = number_of("SOFTWARE_GPU_SEED", settings.seed);
  settings.order = order_of("SOFTWARE_GPU_ORDER");
  settings.memory = number_of("SOFTWARE_GPU_MEMORY_MIB", settings.memory >> 20) << 20;
  settings.fails_at = number_of("SOFTWARE_GPU_FAILS_AT", settings.fails_at);
  settings.counts = text_of("SOFTWARE_GPU_COUNTS");
  return settings;
}

}  // namespace

const Settings& settings() {
  static const Settings read_once = read();
  return read_once;
}

}  // namespace software_gpu
