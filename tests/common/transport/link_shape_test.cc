#include "common/transport/link_shape.h"

#include <gtest/gtest.h>

namespace syncopate {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

TEST(LinkShape, IsReadAndWrittenBack) {
  const struct {
    const char* text;
    std::int64_t rate;
    Duration delay;
    const char* canonical;
  } cases[] = {
      {"1gbit", 1000000000, Duration(0), "1gbit"},
      {"100mbit+5ms", 100000000, milliseconds(5), "100mbit+5ms"},
      {"2.5gbit+250us", 2500000000, microseconds(250), "2.5gbit+250us"},
      {"64kbit+1500us", 64000, microseconds(1500), "64kbit+1.5ms"},
      {"1000mbit", 1000000000, Duration(0), "1gbit"},
      {"10Gbit+1ms", 10000000000, milliseconds(1), "10gbit+1ms"},
      {"1GBIT+5MS", 1000000000, milliseconds(5), "1gbit+5ms"},
      {"10Gb/s+0.001s", 10000000000, milliseconds(1), "10gbit+1ms"},
      {"10tbit", 10000000000000, Duration(0), "10000gbit"},
  };
  for (const auto& one : cases) {
    const Result<LinkShape> shape = LinkShape::parse(one.text);
    ASSERT_TRUE(shape.ok()) << shape.status().message();
    EXPECT_EQ(*shape, (LinkShape{one.rate, one.delay}));
    EXPECT_EQ(shape->to_string(), one.canonical);
    EXPECT_EQ(*LinkShape::parse(shape->to_string()), *shape);
  }
}

TEST(LinkShape, SaysWhatItIs) {
  EXPECT_EQ(LinkShape::parse("1gbit")->describe(), "1 Gb/s each way a process");
  EXPECT_EQ(LinkShape::parse("100mbit+5ms")->describe(), "100 Mb/s each way a process, 5 ms one way");
  EXPECT_EQ(LinkShape::parse("10000gbit")->describe(), "10 Tb/s each way a process");
}

TEST(LinkShape, RefusesWhatIsNone) {
  for (const char* text :
       {"", "1", "gbit", "1 gbit", "1gb", "10GB", "0gbit", "-1gbit", "nangbit", "infgbit", "11tbit", "1gbit+11s",
        "1gbit+", "1gbit+5", "1gbit+0ms", "1gbit+-1ms", "1gbit+11000ms", "1gbit+5ms+5ms", "+5ms"}) {
    const Result<LinkShape> shape = LinkShape::parse(text);
    ASSERT_FALSE(shape.ok()) << text;
    EXPECT_EQ(shape.status().message(), std::string("'") + text + "' must be " + LinkShape::forms());
  }
}

TEST(LinkShape, CountsTheFramesOfEachSegment) {
  EXPECT_EQ(bytes_on_wire(0), 90u);
  EXPECT_EQ(bytes_on_wire(1), 91u);
  EXPECT_EQ(bytes_on_wire(1448), 1538u);
  EXPECT_EQ(bytes_on_wire(1449), 1449u + 2 * 90);
  EXPECT_EQ(bytes_on_wire(1448000), 1538000u);
}

TEST(LinkShape, SaysHowLongAMessageTakes) {
  EXPECT_EQ(LinkShape::parse("1gbit")->time_of(1448), Duration(12304));
  EXPECT_EQ(LinkShape::parse("100mbit+5ms")->time_of(1448), Duration(123040)) << "the delay is not the link's time";
}

}  // namespace
}  // namespace syncopate
