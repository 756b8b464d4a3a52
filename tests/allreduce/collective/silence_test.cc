// A rank that falls silent after any message of any operation: all others return within their deadline.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "allreduce/collective/schedule_collective.h"
#include "allreduce/compression/compressed_reduction.h"
#include "allreduce/strategy/table_exchange.h"
#include "tests/support/cluster.h"
#include "tests/support/quiet_wire.h"
#include "tests/support/slowness.h"

namespace syncopate::allreduce {
namespace {

using testing_support::connect_group;
using testing_support::MortalTransport;
using testing_support::run_ranks;

constexpr int kRanks = 3;
constexpr Duration kPatience = std::chrono::milliseconds(20);
constexpr Duration kSlack = std::chrono::seconds(5) * testing_support::kSlowness;

// What a rank does, in memory that is there before the time counts.
using Operation = std::function<Status(TimePoint deadline)>;
using Prepare = std::function<Operation(Collective&)>;

struct Case {
  std::string name;
  ScheduleKind kind = ScheduleKind::kRing;
  Prepare prepare;
};
void PrintTo(const Case& tested, std::ostream* out) { *out << tested.name; }

std::span<float> floats_of(Collective& collective, std::size_t elements) { return *collective.allocate(elements); }

Prepare all_reduce() {
  return [](Collective& collective) -> Operation {
    return [&collective, buffer = floats_of(collective, 100)](TimePoint deadline) {
      return collective.all_reduce(buffer, deadline);
    };
  };
}

Prepare compressed(const char* codec) {
  return [codec](Collective& collective) -> Operation {
    static const SteadyClock clock;
    ParamLayout layout;
    layout.add("matrix", {20, 30});
    std::shared_ptr<CompressedReduction> reduction =
        std::move(*make_compressed_reduction(*parse_codec(codec), layout, 1, collective, clock));
    return [reduction, gradients = floats_of(collective, layout.size())](TimePoint deadline) {
      return reduction->reduce({0, gradients.size()}, gradients, {}, deadline).status();
    };
  };
}

Prepare rows(ExchangeMethod way) {
  return [way](Collective& collective) -> Operation {
    ParamLayout layout;
    layout.add_table("table", 10, 2, {.rows_a_step = 3});
    auto exchange = std::make_shared<TableExchange>(collective, layout.tables().front());
    EXPECT_TRUE(exchange->prepare(way).ok());
    return [exchange, way](TimePoint deadline) {
      return exchange->exchange(way, std::vector<RowKey>{1, 9}, std::vector<float>{1, 2, 3, 4}, deadline);
    };
  };
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const ScheduleKind kind : kAllScheduleKinds) {
    std::string name = fmt::format("all_reduce_{}", name_of(kind));
    std::ranges::replace(name, '-', '_');
    cases.push_back({name, kind, all_reduce()});
  }
  cases.push_back({"broadcast", ScheduleKind::kRing, [](Collective& collective) -> Operation {
                     return [&collective, buffer = floats_of(collective, 100)](TimePoint deadline) {
                       return collective.broadcast(buffer, 1, deadline);
                     };
                   }});
  cases.push_back({"barrier", ScheduleKind::kRing, [](Collective& collective) -> Operation {
                     return [&collective](TimePoint deadline) { return collective.barrier(deadline); };
                   }});
  cases.push_back({"reduce_pair", ScheduleKind::kRing, [](Collective& collective) -> Operation {
                     return [&collective, buffer = floats_of(collective, 100)](TimePoint deadline) {
                       if (collective.rank() == 2) return Status();
                       return collective.reduce_pair(buffer, 1 - collective.rank(), deadline);
                     };
                   }});
  for (const char* codec : {"int8", "topk:0.1", "randomk:0.1", "sign", "powersgd:2"}) {
    const std::string name = codec;
    cases.push_back({"compressed_" + name.substr(0, name.find(':')), ScheduleKind::kRing, compressed(codec)});
  }
  cases.push_back({"rows", ScheduleKind::kRing, rows(ExchangeMethod::kRows)});
  cases.push_back({"dense_rows", ScheduleKind::kRing, rows(ExchangeMethod::kDense)});
  return cases;
}

class Silence : public testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(In, Silence, testing::ValuesIn(all_cases()),
                         [](const auto& tested) { return tested.param.name; });

TEST_P(Silence, LetsAllOthersReturnWithinTheirDeadline) {
  std::size_t messages = 0;
  for (bool silent = true; silent && messages < 100; ++messages) {
    SCOPED_TRACE(fmt::format("rank 1 is silent after {} messages", messages));
    const auto group = connect_group("inproc", kRanks);
    run_ranks(kRanks, [&](int rank) {
      MortalTransport transport(*group[static_cast<std::size_t>(rank)], rank == 1 ? messages : 1000);
      const auto collective = make_schedule_collective(transport, {.kind = GetParam().kind});
      const Operation operation = GetParam().prepare(*collective);
      const SteadyClock clock;
      const TimePoint deadline = clock.now() + kPatience;
      const Status status = operation(deadline);
      EXPECT_LT(clock.now(), deadline + kSlack);
      if (rank == 1) {
        silent = transport.died();
      } else {
        EXPECT_TRUE(status.ok() || status.code() == Code::kDeadlineExceeded) << status.message();
      }
    });
  }
  EXPECT_GT(messages, 1u);
}

}  // namespace
}  // namespace syncopate::allreduce
