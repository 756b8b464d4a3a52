#include "prediction/reproduction/validated_error.h"

#include <algorithm>
#include <cassert>

#include "prediction/reproduction/reproduction.h"

namespace syncopate::prediction {

std::optional<ValidatedError> validated_error(Exchange exchange) {
  ValidatedError error{.tables = reproductions_of(exchange)};
  if (error.tables.empty()) return std::nullopt;
  for (const std::string& name : error.tables) {
    const Result<Reproduction> table = reproduce(name);
    assert(table.ok());
    error.median = std::max(error.median, table->median_error());
    error.worst = std::max(error.worst, table->worst_error());
  }
  return error;
}

}  // namespace syncopate::prediction
