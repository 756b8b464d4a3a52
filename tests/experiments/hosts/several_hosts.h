// SeveralHosts: what tests of runs on several hosts share: three hosts on a real network, which the test makes for
// itself, and run_experiment on one of them.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "tests/faults/failing_run.h"
#include "tests/support/network_hosts_fixture.h"

namespace syncopate::experiments {

inline const std::string kA = testing_support::NetworkHosts::address_of("a");
inline const std::string kB = testing_support::NetworkHosts::address_of("b");

class SeveralHosts : public testing_support::NetworkHostsTest {
 protected:
  // Starts run_experiment at home, with `slots` as in "a:1,b:1".
  Program& start(const std::string& slots, Flags flags) {
    flags.push_back("--hosts=" + testing_support::NetworkHosts::slots(slots));
    flags.push_back(hosts_->remote_shell());
    return program_.emplace(flags, hosts_->on("home"));
  }
  // Until all train, without end.
  Program& train(const std::string& slots, const Flags& mode, int workers) {
    Program& program = start(slots, training(mode));
    trains_ = program.wait_until_training(workers);
    return program;
  }
  // How a line about a process on another host begins.
  static std::string naming_remote(const std::string& name, const std::string& host, pid_t pid) {
    return fmt::format("{} \\(host {}, pid {}; [a-z ]+( at step [0-9]+)?, last heard [0-9.]+ s ago\\) ", name, host,
                       pid);
  }

  std::optional<Program> program_;
  bool trains_ = false;
};

}  // namespace syncopate::experiments
