#include "common/transport/secret_text.h"

#include <gtest/gtest.h>

#include <new>
#include <utility>

namespace syncopate {
namespace {

TEST(SecretText, HoldsTextAndWhatComesBehindIt) {
  EXPECT_EQ(SecretText().view(), "");
  EXPECT_EQ(SecretText("abc").view(), "abc");
  EXPECT_EQ(SecretText("abc", "\n").view(), "abc\n");
}

TEST(SecretText, CanBeCopiedAndMoved) {
  SecretText one("one"), two = one;
  EXPECT_EQ(one.view(), "one");
  SecretText moved = std::move(one);
  EXPECT_EQ(moved.view(), "one");
  two = SecretText("two");
  moved = two;
  EXPECT_EQ(moved.view(), "two");
  EXPECT_EQ(two.view(), "two");
}

// A short text lies in the object itself, where a test may look for it afterwards.
TEST(SecretText, LeavesNothingInMemoryThatItHad) {
  alignas(SecretText) unsigned char memory[sizeof(SecretText)] = {};
  auto* secret = new (memory) SecretText("tell nobody");
  ASSERT_EQ(secret->view(), "tell nobody");
  secret->~SecretText();
  const volatile unsigned char* const left = memory;
  for (std::size_t i = 0; i + 2 < sizeof(memory); ++i) {
    EXPECT_FALSE(left[i] == 'b' && left[i + 1] == 'o' && left[i + 2] == 'd');
  }
}

}  // namespace
}  // namespace syncopate
