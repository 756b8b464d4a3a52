// Reads the tables of published measurements (published/*.csv), which say in each row where it is from. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"

namespace syncopate::prediction {

// A row, by the names of the first line.
class PublishedRow {
 public:
  explicit PublishedRow(std::map<std::string, std::string> cells) : cells_(std::move(cells)) {}

  bool has(const std::string& column) const { return cells_.contains(column); }
  // Both need a column of that name, which the tables of this repository have; number() needs a number in it.
  const std::string& text(const std::string& column) const;
  double number(const std::string& column) const;
  // What stands behind "NAME=" in the note, up to the next semicolon; empty without it.
  std::string noted(const std::string& name) const;

 private:
  std::map<std::string, std::string> cells_;
};

// Reads comma-separated values: the first line names the columns, and a value in quotes may hold commas and, doubled,
// quotes. Fails with invalid argument, naming the line, if a line has another number of values or an open quote.
Result<std::vector<PublishedRow>> read_table(std::string_view text);

// A table that is built in, by the name of its file; there must be one.
std::vector<PublishedRow> published_table(std::string_view name);

}  // namespace syncopate::prediction
