#include "common/text/quantity.h"

#include <gtest/gtest.h>

namespace syncopate {
namespace {

TEST(Quantity, IsOneValueInEachOfItsUnits) {
  for (const char* text : {"300ms", "0.3s", "300000us", "0.005min"}) EXPECT_EQ(parse_time(text), 0.3) << text;
  EXPECT_EQ(parse_time("2h"), parse_time("120min"));
  for (const char* text : {"25MB", "25000kB", "25000000B", "0.025GB"}) EXPECT_EQ(parse_bytes(text), 25e6) << text;
  EXPECT_EQ(parse_bytes("1GiB"), parse_bytes("1024MiB"));
  for (const char* text : {"10gbit", "10Gbit", "10GBIT", "10Gb/s", "10gb/s", "10Gbps", "10000mbit", "0.01tbit"})
    EXPECT_EQ(parse_bits_per_second(text), 10e9) << text;
  EXPECT_EQ(parse_bytes_per_second("0.9GB/s"), parse_bytes_per_second("900MB/s"));
  EXPECT_EQ(parse_flops("0.9TFLOPS"), parse_flops("900GFLOPS"));
}

TEST(Quantity, IsNoneWithoutItsUnitOrWithAnother) {
  for (const char* text : {"", "s", "300", "300 ms", "3m", "3MS", "3ss", "1gbit"})
    EXPECT_FALSE(parse_time(text)) << text;
  for (const char* text : {"", "B", "1", "1mb", "1Mb", "1kib", "1MBs"}) EXPECT_FALSE(parse_bytes(text)) << text;
  for (const char* text : {"", "10", "10g", "10gb", "10GB", "10GB/s", "10gB/s", "10GBps", "gbit", "10ms"})
    EXPECT_FALSE(parse_bits_per_second(text)) << text;
}

TEST(Quantity, MayStandWithoutAUnitThatIsUnderstood) {
  EXPECT_EQ(parse_in_unit("20", "seconds"), 20);
  EXPECT_EQ(parse_in_unit("20s", "seconds"), 20);
  EXPECT_EQ(parse_in_unit("1024", "bytes"), 1024);
  EXPECT_EQ(parse_in_unit("1KiB", "bytes"), 1024);
  EXPECT_EQ(parse_in_unit("20s", "bytes"), std::nullopt);
  EXPECT_EQ(parse_in_unit("20s", "steps"), std::nullopt);
}

}  // namespace
}  // namespace syncopate
