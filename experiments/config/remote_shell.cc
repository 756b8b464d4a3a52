#include "experiments/config/remote_shell.h"

#include <algorithm>
#include <cctype>

namespace syncopate::experiments {

Result<std::vector<std::string>> split_words(std::string_view text) {
  std::vector<std::string> words;
  bool within = false;  // within a word
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote == 0 && (c == ' ' || c == '\t')) {
      within = false;
      continue;
    }
    if (!std::exchange(within, true)) words.emplace_back();
    const bool escapes = c == '\\' && quote != '\'' && i + 1 < text.size();
    if (escapes) {
      words.back() += text[++i];
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == quote) {
      quote = 0;
    } else {
      words.back() += c;
    }
  }
  if (quote != 0) return Status::invalid_argument(std::string("a ") + quote + " is not closed");
  return words;
}

std::string quoted(const std::string& word) {
  constexpr std::string_view kPlain = "%+,-./:=@_";
  const auto is_plain = [&](unsigned char c) {
    return std::isalnum(c) != 0 || kPlain.find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!word.empty() && std::ranges::all_of(word, is_plain)) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string remote_command(const RemoteShell& shell,
                           const std::vector<std::pair<std::string, std::string>>& environment,
                           const std::vector<std::string>& command) {
  std::string text = "cd " + quoted(shell.directory) + " && exec env";
  for (const auto& [name, value] : environment) text += " " + quoted(name + "=" + value);
  for (const std::string& word : command) text += " " + quoted(word);
  return text;
}

std::vector<std::string> through_remote_shell(const RemoteShell& shell, const std::string& host,
                                              const std::string& remote_command) {
  std::vector<std::string> command = shell.words;
  command.push_back(host);
  command.insert(command.end(), shell.behind_host.begin(), shell.behind_host.end());
  command.push_back(remote_command);
  return command;
}

}  // namespace syncopate::experiments
