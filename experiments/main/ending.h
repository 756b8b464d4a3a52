// How a command ends: with its text and exit code 0, or with what was wrong and the exit code of that.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "common/status.h"
#include "common/text/printable_text.h"
#include "experiments/cluster/exit_code.h"

namespace syncopate::experiments {

inline void complain(const std::string& message) {
  write_out(stderr, fmt::format("run_experiment: {}\n", printable_lines(message)));
}

inline ExitCode failed(const Status& status) {
  complain(status.message());
  return exit_code_of(status);
}

inline ExitCode show(const Result<std::string>& text) {
  if (!text.ok()) return failed(text.status());
  write_out(stdout, *text);
  return ExitCode::kSuccess;
}

}  // namespace syncopate::experiments
