#include "ps/policy/host_groups.h"

namespace syncopate::ps {

HostGroups::HostGroups(const std::vector<int>& workers_by_host, bool aggregated) : aggregated_(aggregated) {
  for (std::size_t host = 0; host < workers_by_host.size(); ++host) {
    const auto lowest = static_cast<int>(places_.size());
    const int workers = workers_by_host[host];
    places_.insert(places_.end(), static_cast<std::size_t>(workers),
                   {.host = static_cast<int>(host), .lowest = lowest, .workers = workers});
  }
}

}  // namespace syncopate::ps
