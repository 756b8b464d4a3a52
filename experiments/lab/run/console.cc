#include "experiments/lab/run/console.h"

#include <fmt/format.h>
#include <stdio_ext.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "common/text/printable_text.h"
#include "experiments/config/wrapped_text.h"

namespace syncopate::experiments {

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
  // Otherwise the rest of the buffer would be tried again at each call, and at the end.
  if (!written) __fpurge(stream);
  return written;
}

Console::Console(bool quiet) : quiet_(quiet), printer_(terminal_columns()) {}

void Console::say(const std::string& text) {
  if (!quiet_) print(printer_.interrupt() + wrapped_prose(printable_lines(text), terminal_columns()) + "\n");
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

void Console::progress(const Progress& progress, TimePoint now) {
  if (!quiet_) print(printer_.update(progress, now));
}

void Console::epoch_finished(const Progress& progress, TimePoint now) {
  if (!quiet_) print(printer_.epoch_finished(progress, now));
}

void Console::evaluated(const EvalRecord& eval, std::int64_t epochs) {
  std::string held_out;
  if (eval.validation && eval.train_loss) {
    held_out = fmt::format("train loss {:.4f}{}  ", *eval.train_loss,
                           eval.train_accuracy ? fmt::format(", accuracy {:.4f}", *eval.train_accuracy) : "");
  }
  if (eval.validation) held_out += to_text(*eval.validation) + "  ";
  say(fmt::format("epoch {:.4g}/{}  evaluated  {}test loss {:.4f}  {}", eval.epoch, epochs, held_out, eval.loss,
                  to_text(eval.accuracy, eval.figures)));
}

void Console::evaluated(const EvalRecord& eval) {
  std::string text = fmt::format("step {}  evaluated", eval.step);
  if (!std::isnan(eval.loss)) text += fmt::format("  loss {:.4f}", eval.loss);
  if (!std::isnan(eval.accuracy)) text += "  " + to_text(eval.accuracy, eval.figures);
  say(text);
}

void Console::print(const std::string& text) {
  if (text.empty() || ended_) return;
  ended_ = !write_out(stdout, text);
}

}  // namespace syncopate::experiments
