#include "prediction/reproduction/validated_error.h"

#include <algorithm>
#include <cassert>

#include "prediction/reproduction/reproduction.h"

namespace syncopate::prediction {

std::optional<ValidatedError> validated_error(Exchange exchange) {
  ValidatedError error;
  for (const std::string& name : reproduction_names()) {
    const Result<Reproduction> table = reproduce(name);
    assert(table.ok());
    if (table->speaks_for != exchange) continue;
    error.median = std::max(error.median, table->median_error());
    error.worst = std::max(error.worst, table->worst_error());
    error.tables.push_back(name);
  }
  if (error.tables.empty()) return std::nullopt;
  return error;
}

}  // namespace syncopate::prediction
