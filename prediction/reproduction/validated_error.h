// How far the closed forms have been from measurements, as the tables of reproduction.h say. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "prediction/step_prediction.h"

namespace syncopate::prediction {

struct ValidatedError {
  double median = 0;  // the largest of the tables' median errors, as a fraction
  double worst = 0;   // the largest error of all their predicted cells
  std::vector<std::string> tables;
};

// Counts all tables that measured this exchange between hosts; none if there is no such table.
std::optional<ValidatedError> validated_error(Exchange exchange);

}  // namespace syncopate::prediction
