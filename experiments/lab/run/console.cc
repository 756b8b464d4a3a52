#include "experiments/lab/run/console.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio_ext.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "common/text/printable_text.h"
#include "experiments/cluster/control/figure_text.h"
#include "experiments/config/wrapped_text.h"

namespace syncopate::experiments {

namespace {

// Standard output is one of the process.
std::atomic<int> output_failure = 0;

void note_failure(int error) {
  if (error != EPIPE) output_failure = error;
}

}  // namespace

int terminal_columns() {
  winsize size{};
  if (isatty(STDOUT_FILENO) == 0) return 0;
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

PlotStyle terminal_plot_style() {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string_view(value == nullptr ? "" : value);
  };
  return plot_style({.columns = terminal_columns(),
                     .no_colour = variable("NO_COLOR"),
                     .term = variable("TERM"),
                     .lc_all = variable("LC_ALL"),
                     .lc_ctype = variable("LC_CTYPE"),
                     .lang = variable("LANG")});
}

bool write_out(std::FILE* stream, const std::string& text) {
  const bool written = std::fputs(text.c_str(), stream) >= 0 && std::fflush(stream) == 0;
  if (written) return true;
  if (stream == stdout) note_failure(errno);
  // Otherwise the rest of the buffer would be tried again at each call, and at the end.
  __fpurge(stream);
  return false;
}

Status output_status() {
  const int error = output_failure;
  if (error == 0) return {};
  return Status::resource_exhausted(fmt::format("standard output: cannot be written: {}", std::strerror(error)));
}

void keep_standard_streams() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(number, F_GETFD) >= 0) continue;
    const int opened =
        open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY);  // the lowest number that is free
    if (opened >= 0 && opened != number) close(opened);
  }
}

Console::Console(bool quiet) : quiet_(quiet), printer_(terminal_columns()) {}

void Console::say(const std::string& text) {
  if (!quiet_) print(printer_.interrupt() + wrapped_prose(printable_lines(text), terminal_columns()) + "\n");
}

void Console::show(const std::string& line) {
  if (!quiet_) print(printer_.interrupt() + terminal_line(line) + "\n");
}

void Console::say_part(const std::string& text) {
  if (!quiet_) print(printer_.interrupt() + printable_lines(text));
}

void Console::draw(const std::string& plots) {
  if (!quiet_) print(printer_.interrupt() + plots);
}

void Console::warn(const std::string& text) {
  print(printer_.interrupt());
  (void)write_out(stderr, wrapped_prose(printable_lines(text), terminal_columns()) + "\n");
}

void Console::event(const std::string& text) {
  constexpr int kMostShown = 6;
  if (!quiet_ || ++events_ <= kMostShown) return warn(text);
  if (events_ == kMostShown + 1) warn("more happened in this run: see events in its summary.json");
}

void Console::progress(const Progress& progress, TimePoint now) {
  if (!quiet_) print(printer_.update(progress, now));
}

void Console::epoch_finished(const Progress& progress, TimePoint now) {
  if (!quiet_) print(printer_.epoch_finished(progress, now));
}

void Console::evaluated(const EvalRecord& eval, std::int64_t epochs) {
  std::vector<std::string> parts = {fmt::format("epoch {:.4g}/{}", eval.epoch, epochs), "evaluated"};
  if (eval.validation && eval.train_loss) {
    parts.push_back(fmt::format("train loss {}{}", figure_text(*eval.train_loss),
                                eval.train_accuracy ? ", accuracy " + figure_text(*eval.train_accuracy) : ""));
  }
  if (eval.validation) parts.push_back(to_text(*eval.validation));
  parts.push_back("test loss " + figure_text(eval.loss));
  parts.push_back(to_text(eval.accuracy, eval.figures));
  say(side_by_side(parts));
}

void Console::evaluated(const EvalRecord& eval) {
  std::string text = fmt::format("step {}  evaluated", eval.step);
  if (!std::isnan(eval.loss)) text += "  loss " + figure_text(eval.loss);
  if (!std::isnan(eval.accuracy)) text += "  " + to_text(eval.accuracy, eval.figures);
  say(text);
}

void Console::print(const std::string& text) {
  if (text.empty() || ended_) return;
  ended_ = !write_out(stdout, text);
}

}  // namespace syncopate::experiments
