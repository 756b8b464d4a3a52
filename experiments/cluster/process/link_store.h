// LinkStore: the measured speeds of networks and of hosts' insides, kept between runs in a file of the user's cache,
// $XDG_CACHE_HOME/syncopate or ~/.cache/syncopate. The file can be deleted at any time; speeds are then measured again.
#pragma once

#include <optional>
#include <string>

#include "allreduce/schedule/cost_model.h"
#include "common/status.h"

namespace syncopate::experiments {

class LinkStore {
 public:
  // Returns the user's store; it keeps nothing if there is no home directory.
  static LinkStore of_user();
  // Uses a file that need not exist yet; keeps nothing if `path` is empty.
  explicit LinkStore(std::string path) : path_(std::move(path)) {}

  // `wire` names everything that the speed depends on: "sockets, 4 ranks on 1 host, node7". Returns none if nothing is
  // stored for it, or the file cannot be read.
  std::optional<allreduce::GroupLinks> find(const std::string& wire) const;
  // Replaces the file as a whole, so that a concurrent reader finds the old one or the new one.
  Status keep(const std::string& wire, const allreduce::GroupLinks& links) const;

 private:
  std::string path_;
};

}  // namespace syncopate::experiments
