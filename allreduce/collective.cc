#include "allreduce/collective.h"

#include <fmt/format.h>

namespace syncopate::allreduce {

Status Collective::reduce_scatter(std::span<float> /*buffer*/, TimePoint /*deadline*/) {
  return Status::invalid_argument(fmt::format("the collective {} has no reduce_scatter", name()));
}

Status Collective::all_gather(std::span<float> /*buffer*/, TimePoint /*deadline*/) {
  return Status::invalid_argument(fmt::format("the collective {} has no all_gather", name()));
}

Range Collective::own_part(std::size_t length) const {
  return balanced_ranges(length, static_cast<std::size_t>(size()))[static_cast<std::size_t>(rank())];
}

Status Collective::check_partner(int partner) const {
  if (partner >= 0 && partner < size() && partner != rank()) return Status();
  return Status::invalid_argument(fmt::format(
      "reduce_pair of rank {} with rank {}: the partner must be another of {} ranks", rank(), partner, size()));
}

}  // namespace syncopate::allreduce
