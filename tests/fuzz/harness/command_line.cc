// The command line, one word a line of the input.
#include "experiments/config/command_line.h"

#include "tests/fuzz/harness.h"

namespace syncopate::fuzz {
namespace {

// Words that name files are left out: a harness reads none but its own.
bool names_file(std::string_view word) { return word.starts_with("--config") || word.starts_with("--hostfile"); }

const Harness command_line("command_line", [](Bytes input) {
  std::vector<std::string> words{"run_experiment"};
  for (std::string_view text = text_of(input); !text.empty() && words.size() < 32;) {
    const std::size_t end = text.find('\n');
    const std::string_view word = text.substr(0, end);
    if (!names_file(word)) words.emplace_back(word.substr(0, word.find('\0')));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  const Result<experiments::CommandLine> line =
      experiments::parse_command_line(static_cast<int>(arguments.size()), arguments.data());
  if (!line.ok()) require(!line.status().message().empty(), "what is refused is refused with a reason");
});

}  // namespace
}  // namespace syncopate::fuzz
