#include "experiments/config/completion.h"

#include <fmt/format.h>

#include "experiments/config/commands.h"
#include "experiments/config/line_options.h"

namespace syncopate::experiments {
namespace {

// "--workers= --dry-run": an option that needs a value goes on behind its sign.
std::string words_of(const OptionForms& forms) {
  std::string words;
  for (const auto& [name, form] : forms) {
    words += fmt::format(" --{}{}", name, form.placeholder.empty() || !form.bare.empty() ? "" : "=");
  }
  return words;
}

}  // namespace

Result<std::string> completion_answer(const std::vector<std::string>& words) {
  SYNCOPATE_RETURN_IF_ERROR(command_words(words).status());
  std::string names, cases;
  for (const Command& command : commands()) {
    names += (names.empty() ? "" : " ") + command.name;
    cases += fmt::format("    {}) options=\"{}{}\" ;;\n", command.name, command.has_run ? "$run" : "--help",
                         words_of(forms_named(command.options)));
  }
  const std::string run = words_of(forms_of(options_beside_a_run())) + words_of(forms_of(option_table()));
  return fmt::format(R"(# Has bash complete commands and options: source <(./run_experiment completion)
_run_experiment() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} run options
  run="{}"
  case ${{COMP_WORDS[1]}} in
{}    *) options=$run ;;
  esac
  if [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
  elif ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W "{}" -- "$word")
  fi
  [[ ${{COMPREPLY[0]}} == *= ]] && compopt -o nospace
}}
complete -o default -F _run_experiment run_experiment
)",
                     run, cases, names);
}

}  // namespace syncopate::experiments
