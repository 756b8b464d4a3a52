#include "common/text/log.h"

#include <fmt/format.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <memory>
#include <utility>

#include "common/text/printable_text.h"

namespace syncopate {
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

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

RedirectedLog::Take redirected;

}  // namespace

const char* name_of(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "error";
}

RedirectedLog::RedirectedLog(Take take) { redirected = std::move(take); }
RedirectedLog::~RedirectedLog() { redirected = nullptr; }

void start_log(const std::string& name, std::string pattern) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<PrintableMessage>('v').set_pattern(std::move(pattern));
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(name, std::make_shared<spdlog::sinks::stderr_sink_mt>()));
  spdlog::set_formatter(std::move(formatter));
  spdlog::flush_on(spdlog::level::info);
}

void silence_log() { spdlog::set_level(spdlog::level::off); }

void write_log(LogLevel level, fmt::string_view format, fmt::format_args arguments) noexcept try {
  spdlog::logger& logger = *spdlog::default_logger_raw();
  if (!logger.should_log(spdlog_level(level))) return;
  const std::string message = fmt::vformat(format, arguments);
  if (redirected && redirected(level, message)) return;
  logger.log(spdlog_level(level), spdlog::string_view_t(message));
} catch (...) {
  std::fputs("a line of the log is lost: no memory for it\n", stderr);
}

}  // namespace syncopate
