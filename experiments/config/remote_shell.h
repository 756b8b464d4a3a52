// How a process is started on another host: with one command, a text that the shell there reads. Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/status.h"

namespace syncopate::experiments {

struct RemoteShell {
  std::vector<std::string> words;  // {"ssh", "-o", "BatchMode=yes"}; the host and the command follow them
  std::string program;             // path of the executable on other hosts
  // working directory of processes there: the same as here, so that relative paths keep their meaning
  std::string directory;
  // words between the host and the command, for what starts a program and is no shell itself: {"sh", "-c"}
  std::vector<std::string> behind_host = {};
};

// Splits a command line into words as POSIX sh does, with blanks, '...', "..." and \, but without expansions. Fails
// with invalid argument if a quote is not closed.
Result<std::vector<std::string>> split_words(std::string_view text);

// Returns one word for a POSIX shell, quoted if necessary.
std::string quoted(const std::string& word);

// Returns the text that the remote shell runs: it changes to DIRECTORY and replaces itself with COMMAND, with
// ENVIRONMENT set.
std::string remote_command(const RemoteShell& shell,
                           const std::vector<std::pair<std::string, std::string>>& environment,
                           const std::vector<std::string>& command);

// Returns the whole command line that runs `remote_command` on `host`.
std::vector<std::string> through_remote_shell(const RemoteShell& shell, const std::string& host,
                                              const std::string& remote_command);

}  // namespace syncopate::experiments
