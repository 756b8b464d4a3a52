// How a process is started on another host: one command, as a text that the shell there reads. Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/status.h"

namespace syncopate::experiments {

struct RemoteShell {
  std::vector<std::string> words;  // {"ssh", "-o", "BatchMode=yes"}; host and command come behind them
  std::string program;             // path of the executable on other hosts
  std::string directory;           // where processes work there: as here, so that relative paths mean the same
};

// The words of a command line as POSIX sh splits them: blanks, '...', "..." and \, without expansions. Invalid argument
// where a quote is not closed.
Result<std::vector<std::string>> split_words(std::string_view text);

// One word for a POSIX shell, quoted where it must be.
std::string quoted(const std::string& word);

// What the shell on the other host is to run: DIRECTORY entered, COMMAND in the shell's place with ENVIRONMENT.
std::string remote_command(const RemoteShell& shell,
                           const std::vector<std::pair<std::string, std::string>>& environment,
                           const std::vector<std::string>& command);

// The whole command line that runs it on `host`.
std::vector<std::string> through_remote_shell(const RemoteShell& shell, const std::string& host,
                                              const std::string& remote_command);

}  // namespace syncopate::experiments
