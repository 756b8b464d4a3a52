#include "experiments/config/wrapped_text.h"

#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

TEST(WrappedProse, DividesSentencesAndLeavesTables) {
  EXPECT_EQ(wrapped_prose("one two three", 8), "one two\nthree");
  EXPECT_EQ(wrapped_prose("  one two three\n", 8), "  one\n  two\n  three\n") << "below its indentation";
  EXPECT_EQ(wrapped_prose("name   value   more", 8), "name   value   more") << "a table's columns";
  EXPECT_EQ(wrapped_prose("one two three", 0), "one two three") << "no terminal";
  EXPECT_EQ(wrapped_prose("one\n\ntwo\n", 8), "one\n\ntwo\n");
}

}  // namespace
}  // namespace syncopate::experiments
