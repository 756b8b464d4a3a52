// OwnSamples: what a reader makes of a person's own files: the values of all samples and what is to be predicted. Which
// is trained and which tested, and how values are scaled, is decided behind all readers alike (own_dataset.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "worker/data/own/number_array.h"
#include "worker/data/own/own_options.h"

namespace syncopate::worker {

// What is to be predicted, by sample: either texts or numbers.
struct TargetColumn {
  std::string name = {};  // for a person: "species"
  std::string path = {};  // of its file
  std::vector<std::string> texts = {};
  std::vector<double> numbers = {};
  bool whole = false;            // the numbers are whole as they stand in the file
  std::int64_t lines_above = 0;  // of a table: a sample's line is its index, from 1, and these
  bool is_table = false;

  std::int64_t size() const { return static_cast<std::int64_t>(texts.empty() ? numbers.size() : texts.size()); }
};

struct OwnSamples {
  std::string path = {};
  NumberArray values = {};
  TargetColumn target = {};
  std::vector<std::string> names = {};  // of the columns that the values are of; none for others than tables
};

// The two parts of a file that has both.
struct OwnFiles {
  OwnSamples samples = {};
  std::optional<OwnSamples> test = {};
  std::vector<std::string> notes = {};  // what a person must know of how they were read
};

}  // namespace syncopate::worker
