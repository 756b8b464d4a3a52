// Fixtures of tests on several hosts that are network namespaces of this machine. Their tests are skipped, with the
// reason, where none can be made.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "tests/support/network_hosts.h"

namespace syncopate::testing_support {

// For programs that make their hosts themselves, as --cluster=namespaces does.
class NetworkNamespacesTest : public testing::Test {
 protected:
  void SetUp() override {
    static const std::string why_not = NetworkHosts::why_not();
    if (!why_not.empty()) GTEST_SKIP() << why_not;
  }
};

// On hosts of the test's own.
class NetworkHostsTest : public NetworkNamespacesTest {
 protected:
  void SetUp() override {
    NetworkNamespacesTest::SetUp();
    if (!IsSkipped()) hosts_.emplace();
  }

  std::optional<NetworkHosts> hosts_;  // there unless the test is skipped
};

}  // namespace syncopate::testing_support
