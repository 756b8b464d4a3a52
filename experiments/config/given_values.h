// Readers of the values that options were given. Pure.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "common/text/number.h"

namespace syncopate::experiments {

// Reads a number in [least, most]; `unit` stands behind the range in the message. Fails with invalid argument.
template <typename T>
Result<T> number_in(const std::string& name, const std::string& text, T least, T most, std::string_view unit) {
  const std::optional<T> number = parse_number<T>(text);
  if (number && *number >= least && *number <= most) return *number;
  return Status::invalid_argument(fmt::format("--{}={}: must be {} to {}{}", name, text, least, most, unit));
}

// Reads a time in [least, most] seconds, as 0.3, 0.3s or 300ms. Fails with invalid argument.
Result<double> time_in(const std::string& name, const std::string& text, double least, double most);

// Reads a number of bytes in [least, most], as 25000000, 25MB or 16GiB (kB, MB, GB, KiB, MiB, GiB). Fails with invalid
// argument; `range` says in the message what would be right.
Result<double> bytes_in(const std::string& name, const std::string& text, double least, double most,
                        std::string_view range);

// Divides a list of 1 to 64 parts, none empty, with commas between them. Fails with invalid argument.
Result<std::vector<std::string>> parts_in(const std::string& name, const std::string& text);

// Reads such a list of whole numbers in [least, most]. Fails with invalid argument.
Result<std::vector<int>> counts_in(const std::string& name, const std::string& text, int least, int most);

}  // namespace syncopate::experiments
