// How the program was built, as its file says it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/support/build_paths.h"
#include "tests/support/run_program.h"

namespace syncopate {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

std::string readelf(const std::string& options) {
  FILE* output =
      popen(("LC_ALL=C readelf --wide " + options + " " + testing_support::syncopate_program()).c_str(), "r");
  std::string all;
  char text[4096];
  for (std::size_t count = 0; (count = fread(text, 1, sizeof(text), output)) > 0;) all.append(text, count);
  pclose(output);
  return all;
}

class Hardening : public testing::Test {
 protected:
  void SetUp() override {
#ifndef SYNCOPATE_HARDENED
    GTEST_SKIP() << "built without SYNCOPATE_HARDENED";
#endif
  }
};

TEST_F(Hardening, PlacesTheProgramAnywhereInMemory) {
  EXPECT_THAT(readelf("--file-header"), ContainsRegex("Type: +DYN"));
  EXPECT_THAT(readelf("--dynamic"), ContainsRegex("FLAGS_1.* PIE"));
}

TEST_F(Hardening, LetsNobodyWriteWhereFunctionsAreFound) {
  EXPECT_THAT(readelf("--program-headers"), HasSubstr("GNU_RELRO"));
  EXPECT_THAT(readelf("--dynamic"), ContainsRegex("FLAGS_1.* NOW"));
}

TEST_F(Hardening, RunsNoCodeOnTheStack) {
  EXPECT_THAT(readelf("--program-headers"), ContainsRegex("GNU_STACK.* RW "));
  EXPECT_THAT(readelf("--program-headers"), Not(ContainsRegex(" RWE ")));
}

TEST_F(Hardening, ChecksStacks) { EXPECT_THAT(readelf("--dyn-syms"), HasSubstr(" __stack_chk_fail")); }

// Bounds that the compiler knows of: of buffers by the C library, where optimised; of containers by the C++ library.
TEST_F(Hardening, ChecksBounds) {
  EXPECT_THAT(readelf("--syms"), HasSubstr("__glibcxx_assert_fail"));
#ifdef __OPTIMIZE__
  EXPECT_THAT(readelf("--dyn-syms"), ContainsRegex(" __[a-z]+_chk@"));
#endif
}

}  // namespace
}  // namespace syncopate
