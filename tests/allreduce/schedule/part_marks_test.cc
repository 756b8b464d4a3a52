#include "allreduce/schedule/part_marks.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <vector>

#include "allreduce/schedule/algorithms.h"

namespace syncopate::allreduce {
namespace {

TEST(PartMarks, MeetEveryElementOfARingOnceBeforeItIsUsedAndOnceWhenItIsWhole) {
  for (const int size : {2, 3, 5}) {
    for (const std::size_t length : {1u, 17u, 1000u}) {
      for (const std::size_t segment : {0u, 16u, 48u}) {
        SCOPED_TRACE(fmt::format("{} ranks, {} elements, segments of {}", size, length, segment));
        const Schedule schedule = ring_all_reduce(1, size, length, segment);
        const std::vector<PartMarks> marks = marks_of(schedule);
        ASSERT_EQ(marks.size(), schedule.size());
        std::vector<int> met(length), whole(length);
        const auto count = [](std::vector<int>& counts, Range range) {
          for (std::size_t i = range.begin; i < range.end; ++i) ++counts[i];
        };
        for (std::size_t i = 0; i < schedule.size(); ++i) {
          const auto& [send, receive] = schedule[i];
          if (marks[i].send_is_first) count(met, send->range);
          if (send) {
            for (std::size_t e = send->range.begin; e < send->range.end; ++e) ASSERT_EQ(met[e], 1);
          }
          if (marks[i].receive_is_first) count(met, receive->range);
          if (receive) {
            for (std::size_t e = receive->range.begin; e < receive->range.end; ++e) {
              ASSERT_EQ(met[e], 1);
              ASSERT_EQ(whole[e], 0) << "received into what was whole";
            }
          }
          if (marks[i].receive_is_last) count(whole, receive->range);
        }
        EXPECT_EQ(met, std::vector<int>(length, 1));
        EXPECT_EQ(whole, std::vector<int>(length, 1));
      }
    }
  }
}

TEST(PartMarks, MarkNothingWhereNothingIsSent) { EXPECT_TRUE(marks_of(ring_all_reduce(0, 1, 100, 0)).empty()); }

}  // namespace
}  // namespace syncopate::allreduce
