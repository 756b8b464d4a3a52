// The log of a process: lines on standard error for whoever watches it. spdlog writes them, and its header is included
// by log.cc alone: its templates were a third of the time that a file with one line to log took to compile.
#pragma once

#include <fmt/core.h>

#include <functional>
#include <string>

namespace syncopate {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// "debug", "info", "warning", "error"
const char* name_of(LogLevel level);

// From here on, lines carry `name` and look like `pattern`, in spdlog's notation. The message, its %v, is made
// printable (common/text/printable_text.h): text from others can neither control a terminal nor begin a line that looks
// like another message. Call it before other threads log.
void start_log(const std::string& name, std::string pattern);
void silence_log();

// While it lives, `take` is called for each message, by the thread that logs it, as it is: not made printable. Those
// that it refuses, by returning false, are written as otherwise. One lives at a time, on a program's only thread that
// logs.
class RedirectedLog {
 public:
  using Take = std::function<bool(LogLevel level, const std::string& message)>;
  explicit RedirectedLog(Take take);
  ~RedirectedLog();
  RedirectedLog(const RedirectedLog&) = delete;
  RedirectedLog& operator=(const RedirectedLog&) = delete;
};

// Any thread may log. Levels below kInfo are not written. Never throws: a line for which there is no memory is lost,
// and that is said instead.
void write_log(LogLevel level, fmt::string_view format, fmt::format_args arguments) noexcept;

template <typename... T>
void log_debug(fmt::format_string<T...> format, T&&... arguments) {
  write_log(LogLevel::kDebug, format, fmt::make_format_args(arguments...));
}
template <typename... T>
void log_info(fmt::format_string<T...> format, T&&... arguments) {
  write_log(LogLevel::kInfo, format, fmt::make_format_args(arguments...));
}
template <typename... T>
void log_warning(fmt::format_string<T...> format, T&&... arguments) {
  write_log(LogLevel::kWarning, format, fmt::make_format_args(arguments...));
}
template <typename... T>
void log_error(fmt::format_string<T...> format, T&&... arguments) {
  write_log(LogLevel::kError, format, fmt::make_format_args(arguments...));
}

}  // namespace syncopate
