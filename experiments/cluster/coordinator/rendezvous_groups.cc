#include "experiments/cluster/coordinator/rendezvous_groups.h"

#include <fmt/format.h>

#include <utility>

namespace syncopate::experiments {

std::optional<RendezvousGroups::Answer> RendezvousGroups::publish(std::size_t process,
                                                                  const control::Publish& publish) {
  if (publish.size() < 1 || publish.rank() < 0 || publish.rank() >= publish.size()) return std::nullopt;
  Group& group = groups_[publish.group()];
  group.members[publish.rank()] = publish.value();
  group.askers.push_back(process);
  if (static_cast<int>(group.members.size()) < publish.size()) return std::nullopt;
  Answer answer;
  answer.members.set_group(publish.group());
  for (const auto& [rank, value] : group.members) answer.members.add_values(value);
  answer.askers = std::exchange(group.askers, {});
  return answer;
}

// Groups of this membership epoch stay: a process may have learned of it already, and have published.
void RendezvousGroups::begin_membership(std::int64_t number) {
  const std::string of_this = fmt::format("@{}", number);
  std::erase_if(groups_, [&](const auto& group) { return !group.first.ends_with(of_this); });
}

}  // namespace syncopate::experiments
