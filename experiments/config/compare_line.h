// The part of the command line that belongs to compare and study: turns its words into the rows of a comparison. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "experiments/config/command_line.h"
#include "experiments/config/options/given_options.h"

namespace syncopate::experiments {

// The options that only these two take, as they were typed.
struct CompareWords {
  std::optional<std::string> modes, rate_rule, tune_rate, price_worker, price_server, jobs, repeat_limit;
  std::vector<std::string> vary;     // one for each --vary
  std::vector<std::string> folders;  // compare: folders of finished runs
};

// Those of them that are given once.
struct CompareOption {
  const char* name;
  std::optional<std::string> CompareWords::*word;
};
inline constexpr CompareOption kCompareOptions[] = {{"modes", &CompareWords::modes},
                                                    {"rate-rule", &CompareWords::rate_rule},
                                                    {"tune-rate", &CompareWords::tune_rate},
                                                    {"jobs", &CompareWords::jobs},
                                                    {"price-worker", &CompareWords::price_worker},
                                                    {"price-server", &CompareWords::price_server},
                                                    {"repeat-limit", &CompareWords::repeat_limit}};

// A study in a file: the options of its runs, and its own, by their names without dashes; what it varies as
// `vary.workers = "1,2,4"`.
struct StudyFile {
  GivenOptions given;
  CompareWords words;
};

// Reads a study's file, in the syntax of config files (toml.h). Fails with invalid argument, naming what is wrong.
Result<StudyFile> read_study(std::string_view toml);

// Returns what both ask for; the command line wins, also over values that the file varies.
StudyFile merge(const StudyFile& line, StudyFile file);

// Returns the comparison that `words` asks for, with the options `given` applied to all runs. Fails with invalid
// argument and one line that says what is wrong and what would be right.
Result<CommandLine> compare_line(const GivenOptions& given, const CompareWords& words);

// The same for a study, which varies at least one option.
Result<CommandLine> study_line(const GivenOptions& given, const CompareWords& words);

}  // namespace syncopate::experiments
