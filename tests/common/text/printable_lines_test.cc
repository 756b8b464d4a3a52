#include "common/text/printable_lines.h"

#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

TEST(PrintableLines, KeepsLinesAndWhatStandsInThem) {
  for (const char* text : {"", "one", "one\n", "\n", "one\n\n  two µs\n"}) EXPECT_EQ(printable_lines(text), text);
}

TEST(PrintableLines, ShowsWhatWouldDriveATerminal) {
  EXPECT_EQ(printable_lines("one\x1b[2J\ntwo\r\n\xff"), "one\\x1b[2J\ntwo\\r\n\\xff");
}

}  // namespace
}  // namespace syncopate::experiments
