// Config files: a flat list of `name = value` lines in TOML's syntax, with the names of the command line.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/status.h"
#include "experiments/config/resolved_run.h"

namespace syncopate::experiments {

// Reads the name and the value of each line, in order. Accepts what a flat TOML file may hold: comments, "basic"
// strings with the escapes \" \\ \t \n, 'literal' strings, and bare values (numbers). Fails on anything else, with the
// line number.
Result<std::vector<std::pair<std::string, std::string>>> read_toml(std::string_view text);

// Returns the file that reproduces the run: each option that has an effect in it, with its description. It omits output
// and dry-run, which are not part of the job.
std::string to_toml(const ResolvedRun& config);

// Returns a file for a comparison, with what its `configs` share: each option that has an effect in some of them and
// the same value in all of these, except for options that distinguish modes. Runs under local are ignored where there
// are others, since their one worker stands for all.
std::string to_toml(std::span<const ResolvedRun> configs);

// Returns the run that a file of to_toml() describes. What such a file leaves out has no effect in the run, and gets
// its default; without a device it is a run on processors. A file may be anybody's: each option is checked, and so is
// the whole, as resolve() does.
Result<ResolvedRun> from_toml_text(std::string_view text);

}  // namespace syncopate::experiments
