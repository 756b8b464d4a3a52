#include "common/os/target_clones.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <memory>
#include <string>

namespace syncopate {
namespace {

#ifdef SYNCOPATE_BITS_OF_LOOPS

// What the program that is built for this level of the x86-64 psABI prints.
std::string bits_of_loops(int level) {
  const std::string command = SYNCOPATE_BITS_OF_LOOPS + std::to_string(level);
  const std::unique_ptr<FILE, int (*)(FILE*)> output(popen(command.c_str(), "r"), pclose);
  std::string text;
  std::array<char, 4096> part;
  while (fgets(part.data(), part.size(), output.get()) != nullptr) text += part.data();
  return text;
}

// Here and in the next, ranks on different processors would come to different weights otherwise.
TEST(TargetClones, ForAvx2GiveTheBitsOfThoseForSse2) {
  if (!__builtin_cpu_supports("x86-64-v3")) GTEST_SKIP() << "this processor has no AVX2";
  EXPECT_GT(bits_of_loops(1).size(), 500u);
  EXPECT_EQ(bits_of_loops(3), bits_of_loops(1));
}

TEST(TargetClones, ForAvx512GiveTheBitsOfThoseForSse2) {
  if (!__builtin_cpu_supports("x86-64-v4")) GTEST_SKIP() << "this processor has no AVX-512";
  EXPECT_EQ(bits_of_loops(4), bits_of_loops(1));
}

#endif

}  // namespace
}  // namespace syncopate
