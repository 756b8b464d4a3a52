// The commands of the program, a row each: what the first word may be, and what stands behind it. Parsing, help,
// completion and docs/commands.md follow from the rows. Pure.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "experiments/config/options/given_options.h"

namespace syncopate::experiments {

struct Command {
  std::string name;
  std::string operands;              // what stands behind it beside options, as in "FOLDER..."; empty: nothing does
  std::string sentence;              // what it does
  std::string topic;                 // of its help
  bool has_page = false;             // help of its own: the topic is of several, with options of each
  std::vector<std::string> options;  // that it takes, by their names; beside those of a run where it has one
  bool has_run = false;              // it takes the options of a run, too, and may stand behind options
};

// What names a model that can be trained here, and its samples.
inline constexpr std::array kOfModels = {"model",      "dataset",    "classes", "context",
                                         "vocabulary", "image-size", "data-dir"};

// What `predict --device` takes beside a model and a batch, and no other form of predict does.
inline constexpr std::array kOfDeviceSteps = {"device",  "precision", "optimizer",  "cuda-graphs", "dataset",
                                              "classes", "context",   "vocabulary", "image-size",  "data-dir"};

// Returns the commands in the order in which people need them.
const std::vector<Command>& commands();

// Returns the command of this name; null if there is none.
const Command* command_named(std::string_view name);

// What stands behind a command that takes no run.
struct CommandWords {
  std::vector<std::string> operands;
  GivenOptions given;
};

// Reads the words behind `command`, which takes these options. Fails with invalid argument and one line that says what
// is wrong and what would be right.
Result<CommandWords> command_words(std::string_view command, std::span<const std::string> options,
                                   std::span<const std::string> words);
// The same for the words of a line, of which the first is a command of commands().
Result<CommandWords> command_words(std::span<const std::string> words);

// Whether a word before "--" asks for help.
bool asks_for_help(std::span<const std::string> words);

}  // namespace syncopate::experiments
