#include "experiments/lab/doctor/doctor_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string text_of_latency(double microseconds) {
  return doctor_text({.hosts = {{.name = "a"}, {.name = "b"}},
                      .pairs = {{.one = 0, .other = 1, .latency_us = microseconds, .there = 1e6, .back = 1e6}}},
                     {});
}

TEST(DoctorText, SaysALatencyInTheUnitThatFitsIt) {
  EXPECT_THAT(text_of_latency(48.04), HasSubstr(" 48 us"));
  EXPECT_THAT(text_of_latency(1480), AllOf(HasSubstr(" 1.48 ms"), Not(HasSubstr("e+"))));
  EXPECT_THAT(text_of_latency(250'000), HasSubstr(" 250 ms"));
}

}  // namespace
}  // namespace syncopate::experiments
