// NetworkHosts: three hosts on this machine, for tests of runs on several: network namespaces of the test's own, joined
// by a bridge as by a switch. They share everything but the network
// and the name.
//
//   home    10.77.0.1, fd77::1   where run_experiment runs
//   a       10.77.0.2, fd77::2
//   b       10.77.0.3, fd77::3
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/run_program.h"

namespace syncopate::testing_support {

class NetworkHosts {
 public:
  // Empty, or why none can be made here: not root, no iproute2, or a kernel that refuses.
  static std::string why_not();

  // Requires that why_not() is empty.
  NetworkHosts();
  ~NetworkHosts();
  NetworkHosts(const NetworkHosts&) = delete;
  NetworkHosts& operator=(const NetworkHosts&) = delete;

  static std::string address_of(const std::string& host);
  static std::string ipv6_address_of(const std::string& host);
  bool has_ipv6() const { return has_ipv6_; }
  // "10.77.0.2:1,10.77.0.3:1" for "a:1,b:1".
  static std::string slots(const std::string& list);

  // The command line before a program's that has it run on `host`.
  std::vector<std::string> on(const std::string& host) const;
  // The same, with the host's own name, which is `host`.
  std::vector<std::string> named(const std::string& host) const;
  // The same as on() for `home`, where names are those of this text, as /etc/hosts has it.
  std::vector<std::string> knowing_names(const std::string& names) const;
  // --remote-shell=…: what does for these hosts what ssh does.
  std::string remote_shell() const;
  // From now on `host` sends and receives no faster than this, as tc writes it: "20mbit". Returns whether the kernel
  // can.
  bool limit(const std::string& host, const std::string& rate) const;
  // Joins all hosts by a second network, in which each has another address.
  void add_second_network() const;
  static std::string second_address_of(const std::string& host);
  // The bytes that a host has sent so far over one of its networks.
  enum class Network { kFirst, kSecond };
  std::int64_t bytes_sent(const std::string& host, Network network) const;
  // Sets the largest packet of `host`'s device.
  void set_mtu(const std::string& host, int bytes) const;
  // Nothing reaches `host` any more, nor comes from it.
  void cut(const std::string& host) const;

 private:
  std::string namespace_of(const std::string& host) const;

  TemporaryFolder folder_;
  std::string prefix_;
  bool has_ipv6_ = false;
};

}  // namespace syncopate::testing_support
