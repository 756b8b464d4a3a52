#include "common/text/printable_text.h"

#include <gtest/gtest.h>

#include "common/random.h"

namespace syncopate {
namespace {

TEST(PrintableText, LeavesPrintableTextAsItIs) {
  for (const char* text : {"", "step-000400", "a b\\c 'd' \"e\"", "größer als 1 µs", "模型 🙂"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(PrintableText, ShowsWhatATerminalWouldObey) {
  EXPECT_EQ(printable("\x1b[2J\x07"), "\\x1b[2J\\x07");
  EXPECT_EQ(printable("two\nlines\r\tand\x7f"), "two\\nlines\\r\\tand\\x7f");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J"),
            "\\xc2\\x9b2J");  // a control sequence's beginning of one character
}

TEST(PrintableText, ShowsWhatTurnsOrHidesText) {
  EXPECT_EQ(printable("model\u202Esrotsnetefas"), "model\\xe2\\x80\\xaesrotsnetefas");
  EXPECT_EQ(printable("a\u200Bb"), "a\\xe2\\x80\\x8bb");
  EXPECT_EQ(printable("a\u2028b"), "a\\xe2\\x80\\xa8b");
}

TEST(PrintableText, ShowsBytesThatAreNotUtf8) {
  EXPECT_EQ(printable("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(printable("\xc3("), "\\xc3(");                  // the second byte is missing
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");           // longer than it need be
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // half of a pair
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(printable("end\xe2\x82"), "end\\xe2\\x82");
}

TEST(PrintableText, IsNeverLongerThanAsked) {
  EXPECT_EQ(printable("0123456789", 10), "0123456789");
  EXPECT_EQ(printable("0123456789a", 10), "0123456...");
  EXPECT_EQ(printable("012345é789", 10), "012345...");    // between characters
  EXPECT_EQ(printable("01234\x1b\x1b", 10), "01234...");  // and between escapes
  EXPECT_EQ(printable("01234567", 2), "..");
  EXPECT_EQ(printable(std::string(1 << 20, 'x')).size(), kLongestPrintable);
}

TEST(PrintableText, IsTheSameTwice) {
  Random random(3);
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (std::uint64_t bytes = random.below(40); bytes > 0; --bytes) text += static_cast<char>(random.below(256));
    const std::string once = printable(text, 30);
    EXPECT_LE(once.size(), 30u);
    EXPECT_EQ(printable(once, 30), once);
    for (const char c : once) EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  }
}

TEST(PrintableLines, KeepsLinesAndWhatStandsInThem) {
  for (const char* text : {"", "one", "one\n", "\n", "one\n\n  two µs\n"}) EXPECT_EQ(printable_lines(text), text);
}

TEST(PrintableLines, ShowsWhatWouldDriveATerminal) {
  EXPECT_EQ(printable_lines("one\x1b[2J\ntwo\r\n\xff"), "one\\x1b[2J\ntwo\\r\n\\xff");
}

TEST(TerminalLine, IsWhatATerminalHasInTheEnd) {
  EXPECT_EQ(terminal_line("Epoch: [0][1/8]\tTime 1.6\tµ\t|"), "Epoch: [0][1/8] Time 1.6        µ       |");
  EXPECT_EQ(terminal_line("\x1b[1mEpoch\x1b[0m \x1b[31;1m3\x1b[m"), "Epoch 3");
  EXPECT_EQ(terminal_line("  10%|#    |\r  20%|##   |\r"), "  20%|##   |");
  EXPECT_EQ(terminal_line("\x1b[2J\x1b[1"), "\\x1b[2J\\x1b[1") << "nothing else that a terminal would do";
  EXPECT_EQ(terminal_line(""), "");
}

}  // namespace
}  // namespace syncopate
