// Reads tables of text (RFC 4180), a sample a line.
#pragma once

#include <string>

#include "common/status.h"
#include "worker/data/own/own_samples.h"

namespace syncopate::worker {

// The first line names the columns; the separator is the first of comma, semicolon and tab that it has. A byte order
// mark is left out, fields may stand in double quotes, and a last line may be empty. One column is the target, the last
// unless options.target names another; all others but those of options.ignore are values, and must be finite numbers.
// kDataLoss names the line, the column and what was found; kInvalidArgument a column that the file has not.
Result<OwnFiles> read_csv(const std::string& path, const OwnOptions& options);

}  // namespace syncopate::worker
