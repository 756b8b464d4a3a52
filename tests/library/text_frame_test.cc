#include "library/text_frame.h"

#include <gtest/gtest.h>

namespace syncopate::library {
namespace {

using Texts = std::vector<std::string>;

constexpr std::size_t kLongest = 100;

TEST(TextFrame, GivesBackWhatItWasMadeOf) {
  const Texts texts{"ranks", "", std::string("\0\n", 2)};
  const auto read = read_frame(frame_of(texts), kLongest);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, texts);
}

TEST(TextFrame, IsReadOnceItIsWhole) {
  const std::string frame = frame_of({"one", "two"});
  for (std::size_t size = 0; size < frame.size(); ++size) {
    const auto read = read_frame(std::string_view(frame).substr(0, size), kLongest);
    ASSERT_TRUE(read.ok()) << size;
    EXPECT_FALSE(read->has_value()) << size;
  }
}

TEST(TextFrame, RefusesWhatNoMemberWrites) {
  const std::string frame = frame_of({"one"});
  std::string long_text = frame;
  long_text[12] = 4;  // the text's length; its frame has three bytes of it
  std::string cut_length = frame_of({""});
  cut_length[8] = 3;  // the frame's: one less than a text's length takes
  cut_length.pop_back();
  for (const std::string& bytes : {std::string("GET / HTTP/1.1"), std::string("s\n"), frame + "x", long_text,
                                   cut_length, frame_of({std::string(kLongest, 'a')})}) {
    EXPECT_EQ(read_frame(bytes, kLongest).status().code(), Code::kDataLoss) << bytes;
  }
}

// Whatever byte is changed, it is read as something or refused, and never past its end.
TEST(TextFrame, StandsAnyChangedByte) {
  const std::string frame = frame_of({"group", "1", "2", "value"});
  for (std::size_t place = 0; place < frame.size(); ++place) {
    for (int value = 0; value < 256; ++value) {
      std::string changed = frame;
      changed[place] = static_cast<char>(value);
      const auto read = read_frame(changed, kLongest);
      if (!read.ok() || !*read) continue;
      std::size_t size = 0;
      for (const std::string& text : **read) size += text.size();
      EXPECT_LE(size, frame.size());
    }
  }
}

}  // namespace
}  // namespace syncopate::library
