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

// Name and value of each line, in order. Reads what a flat TOML file may hold: comments, "basic" strings with the
// escapes \" \\ \t \n, 'literal' strings, and bare values (numbers). Fails on anything else, with the number of the
// line.
Result<std::vector<std::pair<std::string, std::string>>> read_toml(std::string_view text);

// The file that reproduces `config`: all options that have an effect under its mode, each with its sentence. Without
// output and dry-run, which are not part of the job.
std::string to_toml(const RunConfig& config);

// What a comparison's resolved `configs` share, as a file for it: each option that has an effect in some of them and
// the same value in all of these, without those that tell modes apart. Runs under local are passed over where there are
// others, since their one worker stands for all.
std::string to_toml(std::span<const RunConfig> configs);

// The config that a file describes; what it does not name has its default. Checked option by option and with
// validate().
Result<RunConfig> from_toml_text(std::string_view text);

}  // namespace syncopate::experiments
