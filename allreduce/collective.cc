#include "allreduce/collective.h"

#include <fmt/format.h>

namespace syncopate::allreduce {

Status Collective::check_partner(int partner) const {
  if (partner >= 0 && partner < size() && partner != rank()) return Status();
  return Status::invalid_argument(fmt::format(
      "reduce_pair of rank {} with rank {}: the partner must be another of {} ranks", rank(), partner, size()));
}

}  // namespace syncopate::allreduce
