// Says over which values of a quantity which of two ways is ahead. Pure.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "prediction/advice/lead.h"

namespace syncopate::experiments {

struct LeadNames {
  std::string first;   // with its verb, as in "allreduce leads"
  std::string second;  // the same of the second way
};

// Returns, for example, "allreduce leads below 3.1 Gb/s, nobody could tell from there to 9.8 Gb/s, ...". `shown` makes
// a text of a value. There must be one stretch at least.
std::string stretch_text(const std::vector<prediction::Stretch>& stretches, const LeadNames& names,
                         const std::function<std::string(double)>& shown);

// Returns the same for whole numbers, as in "allreduce leads from 1 to 7, parameter servers lead from 8 on".
std::string whole_stretch_text(const std::vector<prediction::Stretch>& stretches, const LeadNames& names);

}  // namespace syncopate::experiments
