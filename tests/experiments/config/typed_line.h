// A command line as a person types it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "experiments/config/command_line.h"

namespace syncopate::experiments {

inline Result<CommandLine> parse(std::vector<const char*> flags) {
  flags.insert(flags.begin(), "run_experiment");
  return parse_command_line(static_cast<int>(flags.size()), flags.data());
}

// The one line that says what is wrong with it.
inline std::string refusal(std::vector<const char*> flags) {
  const Result<CommandLine> line = parse(std::move(flags));
  if (line.ok()) return "accepted";
  EXPECT_EQ(line.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(line.status().message(), testing::Not(testing::HasSubstr("\n"))) << "one line";
  return line.status().message();
}

}  // namespace syncopate::experiments
