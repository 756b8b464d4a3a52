// Preset: the options under which a run does what a known system does, with a line each on what is the same and what is
// not. `--like=NAME` has those in presets/*.toml, which the build puts into the program; `--like=FILE.toml` a person's
// own.
//
// A file is TOML (toml.h): `about`, one sentence; `same.TOPIC` and `differs.TOPIC`, a sentence each; and options by
// their names without dashes.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/status.h"
#include "experiments/config/options/given_options.h"
#include "experiments/config/run_request.h"

namespace syncopate::experiments {

// presets/*.toml, by name without the ending.
const std::map<std::string_view, std::string_view>& preset_texts();

struct Preset {
  std::string name;  // as it was given
  std::string about;
  std::vector<std::string> same, differs;
  GivenOptions options;
};

// Returns a preset by its name, or from a file whose name ends in .toml. Fails with invalid argument for an unknown
// name, listing all, and for a file that cannot be read or is none.
Result<Preset> open_preset(const std::string& name_or_file);

// Sets the options of a preset that say how replicas are kept in agreement; what a comparison sets in its own way (the
// learning rate's schedule, how many workers) stays as it is. Fails with invalid argument for a preset that sets the
// job itself: its model, its data or how long it trains.
Status apply_to_mode(const Preset& preset, RunRequest& config);

// Returns what a person should know of it: what it is like, what is the same, what is not, and its options.
std::string to_text(const Preset& preset);

}  // namespace syncopate::experiments
