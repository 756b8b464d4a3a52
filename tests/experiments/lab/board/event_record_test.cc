#include "experiments/lab/board/event_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;

// The vectors of RFC 3720, appendix B.4, and the one of every catalogue of checksums.
TEST(Crc32c, IsCastagnolis) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
  std::string ascending;
  for (char byte = 0; byte < 32; ++byte) ascending += byte;
  EXPECT_EQ(crc32c(ascending), 0x46DD794Eu);
  EXPECT_EQ(crc32c(""), 0u);
}

TEST(EventRecord, FramesAnEventWithItsLengthAndTwoChecksums) {
  const board::Event event = version_event(1);
  const std::string data = event.SerializeAsString(), record = event_record(event);
  ASSERT_EQ(record.size(), 8 + 4 + data.size() + 4);
  EXPECT_EQ(static_cast<std::size_t>(record[0]), data.size());
  EXPECT_EQ(record.substr(1, 7), std::string(7, '\0'));
  EXPECT_EQ(record.substr(12, data.size()), data);
}

TEST(HistogramValue, CountsInBucketsOfEqualWidth) {
  std::vector<double> values;
  for (int i = 0; i <= 60; ++i) values.push_back(i);
  const board::Summary::Value value = histogram_value("h", values);
  const board::Histogram& histogram = value.histo();
  EXPECT_EQ(value.tag(), "h");
  ASSERT_EQ(histogram.bucket_size(), 30);
  ASSERT_EQ(histogram.bucket_limit_size(), 30);
  EXPECT_EQ(histogram.bucket(0), 2) << "0 and 1";
  EXPECT_EQ(histogram.bucket(29), 3) << "58, 59, and 60, which is the upper end";
  EXPECT_EQ(histogram.bucket_limit(0), 2);
  EXPECT_EQ(histogram.bucket_limit(29), 60);
  EXPECT_EQ(histogram.min(), 0);
  EXPECT_EQ(histogram.max(), 60);
  EXPECT_EQ(histogram.num(), 61);
  EXPECT_EQ(histogram.sum(), 60 * 61 / 2);
  EXPECT_EQ(histogram.sum_squares(), 60 * 61 * 121 / 6);
}

TEST(HistogramValue, HasOneBucketWhereAllValuesAreEqual) {
  const board::Summary::Value value = histogram_value("h", std::vector<double>{4, 4, 4});
  EXPECT_THAT(value.histo().bucket(), ElementsAre(3));
  EXPECT_THAT(value.histo().bucket_limit(), ElementsAre(4));
}

}  // namespace
}  // namespace syncopate::experiments
