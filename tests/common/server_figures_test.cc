#include "common/server_figures.h"

#include <gtest/gtest.h>

#include <vector>

namespace syncopate {
namespace {

using std::chrono::milliseconds;

constexpr ServerFigures kSome{.updates = 1,
                              .pushes = 2,
                              .dropped = 3,
                              .busy = milliseconds(4),
                              .serving = milliseconds(5),
                              .bytes_in = 6,
                              .bytes_out = 7,
                              .core_wait = milliseconds(8)};

TEST(ServerFigures, TravelAsBits) {
  EXPECT_EQ(server_figures_in(bits_of(kSome)), kSome);
  EXPECT_EQ(server_figures_in(bits_of(ServerFigures())), ServerFigures());
  EXPECT_EQ(server_figures_in({}), ServerFigures());
  const std::vector<std::int64_t> first{9, 8};
  EXPECT_EQ(server_figures_in(first), (ServerFigures{.updates = 9, .pushes = 8}));
}

TEST(ServerFigures, OfShardsAreSumsButForTheTimesOfTheirThreads) {
  ServerFigures all = kSome;
  add_shard({.updates = 10,
             .pushes = 10,
             .dropped = 10,
             .busy = milliseconds(1),
             .serving = milliseconds(9),
             .bytes_in = 10,
             .bytes_out = 10,
             .core_wait = milliseconds(2)},
            all);
  EXPECT_EQ(all, (ServerFigures{.updates = 11,
                                .pushes = 12,
                                .dropped = 13,
                                .busy = milliseconds(4),
                                .serving = milliseconds(9),
                                .bytes_in = 16,
                                .bytes_out = 17,
                                .core_wait = milliseconds(8)}));
}

TEST(ServerFigures, OfOneTimeAndAnotherAreSums) {
  ServerFigures all = kSome;
  add_time(kSome, all);
  EXPECT_EQ(all, (ServerFigures{.updates = 2,
                                .pushes = 4,
                                .dropped = 6,
                                .busy = milliseconds(8),
                                .serving = milliseconds(10),
                                .bytes_in = 12,
                                .bytes_out = 14,
                                .core_wait = milliseconds(16)}));
}

TEST(ServerFigures, KnowAWaitThatOnlyOneOfTwoKnows) {
  for (const auto add : {add_shard, add_time}) {
    ServerFigures none, some = kSome;
    add(kSome, none);
    EXPECT_EQ(none.core_wait, milliseconds(8));
    add({}, some);
    EXPECT_EQ(some.core_wait, milliseconds(8));
    ServerFigures neither;
    add({}, neither);
    EXPECT_FALSE(neither.core_wait);
  }
}

}  // namespace
}  // namespace syncopate
