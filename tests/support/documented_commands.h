// What the pages of this repository tell a reader to type, and what they say he will see.
//
// A fenced block of a Markdown page with lines that begin with ./run_experiment holds commands, which are run in their
// order and in one folder. A comment right above a block says what else is known of it:
//
//   <!-- prints -->           this is what the last command before it prints, in part: each line must come, in this
//                             order; "..." at the end of a line stands for whatever follows, and a line "..." for any
//                             lines
//   <!-- needs: hosts -->     its commands cannot run on every machine; hosts, a GPU, scikit-learn
//
// Pure, but for the reading of files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace syncopate::testing_support {

struct DocumentedBlock {
  int line = 0;                       // of the page, where its commands begin
  std::vector<std::string> commands;  // as a shell takes them, comments left out
  std::vector<std::string> prints;    // lines that the last of them prints; none where the page does not say
  std::string needs;                  // "hosts"; empty for nothing
};

std::vector<DocumentedBlock> documented_blocks(const std::string& page);

// A line with its numbers, units of time and of bytes, verdicts and gaps taken out: "epoch #/# step #/# # samples/s".
std::string shape_of(std::string_view line);

// The first of `shown` that `printed` has no line for, behind those of the lines before it; empty if there is none.
std::string first_line_missing(const std::vector<std::string>& shown, const std::vector<std::string>& printed);

}  // namespace syncopate::testing_support
