#include "experiments/cluster/coordinator/verdict.h"

#include <fmt/format.h>

#include <cstring>

namespace syncopate::experiments {

std::string describe(const ProcessEnd& end) {
  if (end.of_remote_shell) return "lost its remote shell, which " + describe({end.exit_code, end.signal});
  const std::string last = end.last_words.empty() ? "" : ": " + end.last_words;
  if (end.signal) return fmt::format("was killed by signal {} ({}){}", *end.signal, strsignal(*end.signal), last);
  if (end.exit_code) return fmt::format("ended with exit code {}{}", *end.exit_code, last);
  return "is gone";
}

}  // namespace syncopate::experiments
