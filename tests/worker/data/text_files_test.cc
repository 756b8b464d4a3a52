#include "worker/data/text_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <numeric>

#include "tests/worker/data/scratch_folder.h"

namespace syncopate::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Bytes first, first + 1 ..., modulo 256.
Bytes counting(int first, int count) {
  Bytes bytes(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) bytes[i] = static_cast<std::uint8_t>(first + i);
  return bytes;
}

std::vector<int> tokens(const Dataset& data, std::int64_t index) {
  std::vector<int> ids(static_cast<std::size_t>(data.form().labels)), labels = ids;
  data.read(index, 0, {{}, ids, labels});
  for (std::size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(labels[i], (ids[i] + 1) % 256);
  return ids;
}

TEST(Text, WindowsFollowOneAnotherThroughTheFilesInOrderOfTheirNames) {
  const ScratchFolder data;
  data.write("text/b.txt", counting(100, 20));  // 18 bytes to learn from, 2 to test with
  data.write("text/a.txt", counting(0, 50));    // 45 and 5
  data.write("text/notes.md", counting(7, 50));
  data.write("c.txt", counting(9, 50));  // in a folder that comes later
  const Result<TextParts> parts = open_text({data.path("text"), data.path()}, 4);
  ASSERT_TRUE(parts.ok()) << parts.status().message();
  const auto& [train, test] = *parts;
  ASSERT_EQ(train->size(), 11 + 4);
  EXPECT_THAT(tokens(*train, 0), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(tokens(*train, 1), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(tokens(*train, 10), ElementsAre(40, 41, 42, 43));  // and 44, the last byte of the part, as its last label
  EXPECT_THAT(tokens(*train, 11), ElementsAre(100, 101, 102, 103));
  EXPECT_THAT(tokens(*train, 14), ElementsAre(112, 113, 114, 115));
  ASSERT_EQ(test->size(), 1);
  EXPECT_THAT(tokens(*test, 0), ElementsAre(45, 46, 47, 48));
  EXPECT_EQ(train->form(), test->form());
  EXPECT_EQ(train->form().classes, 256);
  EXPECT_FALSE(train->best_loss().has_value());
}

TEST(Text, ReadsBytesThatAreNoLetters) {
  const ScratchFolder data;
  data.write("any.txt", counting(180, 300));
  EXPECT_THAT(tokens(*open_text({data.path()}, 3)->first, 25), ElementsAre(255, 0, 1));
}

TEST(Text, SaysWhatIsMissingTooShortOrNoFile) {
  const ScratchFolder data;
  EXPECT_EQ(open_text({data.path("text"), data.path()}, 4).status().message(),
            "text: found no *.txt in " + data.path("text") + ", " + data.path());
  data.write("a.txt", counting(0, 49));
  EXPECT_EQ(open_text({data.path()}, 4).status().message(),
            "text: the one *.txt in " + data.path() +
                ", 49 bytes together, are too short for --context=4: the last tenth of one file at least must hold 5 "
                "bytes");
  EXPECT_EQ(open_text({data.path()}, 4).status().code(), Code::kDataLoss);
  EXPECT_TRUE(open_text({data.path()}, 3).ok());
  data.write("empty.txt", {});
  EXPECT_EQ(open_text({data.path()}, 3).status().message(), data.path("empty.txt") + ": is empty");
  std::filesystem::remove(data.path("empty.txt"));
  ASSERT_EQ(::mkfifo(data.path("pipe.txt").c_str(), 0600), 0);
  EXPECT_EQ(open_text({data.path()}, 3).status().message(), data.path("pipe.txt") + ": is not a regular file");
  std::filesystem::remove(data.path("pipe.txt"));
  std::filesystem::create_symlink("nowhere", data.path("lost.txt"));
  EXPECT_THAT(open_text({data.path()}, 3).status().message(), HasSubstr("lost.txt: cannot be read"));
}

}  // namespace
}  // namespace syncopate::worker
