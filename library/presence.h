// Presence: what a rank says of itself when the ranks of a job meet. Whoever reaches the place where they meet may read
// it, and write it.
#pragma once

#include <sys/types.h>

#include <string>

#include "common/status.h"

namespace syncopate::library {

struct Presence {
  std::string host;    // its name
  std::string kernel;  // equal where processes see each other, and each other's local sockets
  pid_t pid = 0;
  std::string secret_at;  // where rank 0 gives the job's secret to those of its host
  std::string run_id;     // rank 0's counts
  std::string address;    // by which others reach it, as far as it knows; empty if it was not told where ranks meet
  std::string meets_at;   // the address of that place, as this host knows it

  // Returns that of this process, without `secret_at` and `run_id`. `meets_at` and `address` are a group's options.
  // Fails with invalid argument for an address that this host does not have, and with not found for a place that nobody
  // knows.
  static Result<Presence> of_this_process(const std::string& meets_at, const std::string& address);

  // One line.
  std::string to_text() const;
  // Fails with data loss.
  static Result<Presence> parse(const std::string& text);
};

// "127.0.0.1" and the like: an address by which no other host reaches this one.
bool is_loopback(const std::string& address);

}  // namespace syncopate::library
