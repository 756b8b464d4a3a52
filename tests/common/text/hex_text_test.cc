#include "common/text/hex_text.h"

#include <gtest/gtest.h>

#include <array>

namespace syncopate::allreduce {
namespace {

TEST(HexText, BringsBackEveryByte) {
  std::array<std::byte, 256> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  const std::string text = to_hex(bytes);
  EXPECT_EQ(text.substr(0, 6), "000102");
  EXPECT_EQ(text.substr(506), "fdfeff");
  std::array<std::byte, 256> back{};
  ASSERT_TRUE(from_hex(text, back));
  EXPECT_EQ(back, bytes);
}

TEST(HexText, RefusesWhatItDoesNotWriteItself) {
  std::array<std::byte, 2> bytes;
  for (const char* text : {"", "00", "000", "00000", "000000", "00g0", "0x00", "00 0", "AB00"}) {
    EXPECT_FALSE(from_hex(text, bytes)) << text;
  }
  EXPECT_TRUE(from_hex("ab00", bytes));
  EXPECT_TRUE(from_hex("", {}));
}

}  // namespace
}  // namespace syncopate::allreduce
