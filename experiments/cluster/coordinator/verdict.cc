#include "experiments/cluster/coordinator/verdict.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <cstring>

namespace syncopate::experiments {
namespace {

constexpr int kSignalled = 128;    // a shell adds this to the number of the signal that ended its command
constexpr int kShellFailed = 255;  // ssh reports a lost connection with this code

}  // namespace

ProcessEnd end_of(int status, bool is_remote_shell) {
  ProcessEnd end;
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
  if (!is_remote_shell) return end;
  const int code = end.exit_code.value_or(kShellFailed);
  if (code > kSignalled && code < kShellFailed) return {.exit_code = {}, .signal = code - kSignalled};
  end.of_remote_shell = code == kShellFailed;
  return end;
}

std::string describe(const ProcessEnd& end) {
  if (end.of_remote_shell) return "lost its remote shell, which " + describe({end.exit_code, end.signal});
  const std::string last = end.last_words.empty() ? "" : ": " + end.last_words;
  if (end.out_of_memory) {
    return "was killed by the kernel, since memory ran out (the OOM killer); give its control group or the machine "
           "more, "
           "or use fewer workers or a smaller batch";
  }
  if (end.signal) return fmt::format("was killed by signal {} ({}){}", *end.signal, strsignal(*end.signal), last);
  if (end.exit_code) return fmt::format("ended with exit code {}{}", *end.exit_code, last);
  return "is gone";
}

}  // namespace syncopate::experiments
