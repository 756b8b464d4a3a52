// Config files: a flat list of `name = value` lines in TOML's syntax, with the names of the command line.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/status.h"
#include "experiments/config/run_config.h"

namespace syncopate::experiments {

// Reads the name and the value of each line, in order. Accepts what a flat TOML file may hold: comments, "basic"
// strings with the escapes \" \\ \t \n, 'literal' strings, and bare values (numbers). Fails on anything else, with the
// line number.
Result<std::vector<std::pair<std::string, std::string>>> read_toml(std::string_view text);

// Returns the file that reproduces `config`: each option that has an effect under its mode, with its description. It
// omits output and dry-run, which are not part of the job.
std::string to_toml(const RunConfig& config);

// Returns a file for a comparison, with what its resolved `configs` share: each option that has an effect in some of
// them and the same value in all of these, except for options that distinguish modes. Runs under local are ignored
// where there are others, since their one worker stands for all.
std::string to_toml(std::span<const RunConfig> configs);

// Returns the config that a file describes, with the default for each option that it does not name. Each option is
// checked, and the whole by validate().
Result<RunConfig> from_toml_text(std::string_view text);

}  // namespace syncopate::experiments
