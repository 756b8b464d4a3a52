#include "experiments/cluster/process/mpirun_agent.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "experiments/cluster/process/shared_keys.h"
#include "experiments/cluster/starter.h"

namespace syncopate::experiments {
namespace {

constexpr const char* kWords = "SYNCOPATE_AGENT_SHELL";
constexpr const char* kProgram = "SYNCOPATE_AGENT_PROGRAM";
constexpr const char* kDirectory = "SYNCOPATE_AGENT_DIRECTORY";
constexpr Duration kKeysTimeout = std::chrono::seconds(30);

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int fail(const std::string& message) {
  fmt::print(stderr, "{}\n", message);
  return kNotStarted;
}

int become(const std::vector<std::string>& words) {
  std::vector<std::string> texts = words;
  std::vector<char*> arguments;
  for (std::string& text : texts) arguments.push_back(text.data());
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  return fail(fmt::format("cannot start {}: {}", words[0], strerror(errno)));
}

// Makes standard input a pipe that contains `text` and does not end before this process does, which holds both ends.
bool put_on_stdin(std::string_view text) {
  int ends[2];
  return pipe(ends) == 0 && write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
         dup2(ends[0], STDIN_FILENO) == STDIN_FILENO && close(ends[0]) == 0;
}

}  // namespace

bool is_mpirun_agent_command_line(int argc, const char* const* argv) {
  return argc > 3 && std::string_view(argv[1]) == "--mpirun-agent";
}

bool is_lend_keys_command_line(int argc, const char* const* argv) {
  return argc > 2 && std::string_view(argv[1]) == "--lend-keys";
}

std::vector<std::pair<std::string, std::string>> environment_of_agent(const RemoteShell& shell) {
  std::string words;
  for (const std::string& word : shell.words) words += (words.empty() ? "" : " ") + quoted(word);
  return {{kWords, words}, {kProgram, shell.program}, {kDirectory, shell.directory}};
}

int mpirun_agent_main(int argc, char** argv) {
  die_with_parent();
  const Result<std::vector<std::string>> words = split_words(variable(kWords));
  if (!words.ok() || words->empty()) return fail("an agent of mpirun without a remote shell");
  const RemoteShell shell{.words = *words, .program = variable(kProgram), .directory = variable(kDirectory)};
  const Result<SecretText> keys = shared_line();
  if (!keys.ok()) return fail(keys.status().message());
  // Joins the words as ssh does: the shell must read what mpirun has quoted. A daemon that replaces its shell ends with
  // the guard.
  std::string daemon;
  for (int i = 3; i < argc; ++i) daemon += std::string(daemon.empty() ? "" : " ") + argv[i];
  daemon.erase(0, daemon.find_first_not_of(' '));
  if (daemon.starts_with("orted ")) daemon.insert(0, "exec ");
  const std::string command =
      remote_command(shell, {}, {shell.program, "--guard", shell.program, "--lend-keys", "sh", "-c", daemon});
  if (!put_on_stdin(SecretText(keys->view(), "\n").view()))
    return fail(fmt::format("cannot make a pipe: {}", strerror(errno)));
  return become(through_remote_shell(shell, argv[2], command));
}

int lend_keys_main(int argc, char** argv) {
  const Result<SecretText> keys = line_on_stdin(SteadyClock().now() + kKeysTimeout);
  if (!keys.ok()) return fail(keys.status().message());
  const Result<FileDescriptor> shared = lend(keys->view(), true);
  if (!shared.ok()) return fail(shared.status().message());
  setenv(kSharedKeys, path_of(*shared).c_str(), 1);
  return become({argv + 2, argv + argc});
}

}  // namespace syncopate::experiments
