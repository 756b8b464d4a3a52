#include "experiments/cluster/process/log_lines.h"

#include <spdlog/pattern_formatter.h>

#include <string_view>

#include "common/text/printable_text.h"

namespace syncopate::experiments {
namespace {

constexpr std::size_t kLongestMessage = 1 << 14;

class PrintableMessage final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& line) override {
    const std::string text = printable({message.payload.data(), message.payload.size()}, kLongestMessage);
    line.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<PrintableMessage>(); }
};

}  // namespace

std::unique_ptr<spdlog::formatter> printable_log_lines(std::string pattern) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<PrintableMessage>('v').set_pattern(std::move(pattern));
  return formatter;
}

}  // namespace syncopate::experiments
