// What is known of the speed of wires, kept between runs: a file of a person's cache, $XDG_CACHE_HOME/syncopate or
// ~/.cache/syncopate. It can be deleted at any time: then it is measured again.
#pragma once

#include <optional>
#include <string>

#include "allreduce/schedule/cost_model.h"
#include "common/status.h"

namespace syncopate::experiments {

class LinkStore {
 public:
  // The person's; keeps nothing where there is no home.
  static LinkStore of_user();
  // Of a file that need not be there yet; keeps nothing where `path` is empty.
  explicit LinkStore(std::string path) : path_(std::move(path)) {}

  // `wire` says all that the speed depends on: "sockets, 4 ranks on 1 host, node7". Nothing where nothing is kept for
  // it, or the file cannot be read.
  std::optional<allreduce::LinkModel> find(const std::string& wire) const;
  // Replaces the file as a whole, so that one who reads meanwhile finds the old one or the new one.
  Status keep(const std::string& wire, const allreduce::LinkModel& link) const;

 private:
  std::string path_;
};

}  // namespace syncopate::experiments
