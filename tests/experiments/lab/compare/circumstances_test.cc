#include "experiments/lab/compare/circumstances.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiments/config/host_list.h"
#include "tests/support/resolved.h"

namespace syncopate::experiments {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::vector<std::string> lines_of_rows(RunRequest base, const std::vector<ps::Consistency>& rows,
                                       const std::vector<std::string>& varied = {}) {
  std::vector<PlannedRun> runs;
  base.mode = Mode::kPs;
  for (const ps::Consistency& consistency : rows) {
    base.consistency = consistency;
    runs.push_back({.label = "row", .config = resolved(base)});
  }
  return circumstances_of(runs, base, varied, 2);
}

RunRequest simulated_base() {
  RunRequest base;
  base.cluster = ClusterKind::kSimulated;
  base.workers = 4;
  return base;
}

const ps::Consistency kSyncRow = *ps::Consistency::parse("sync"), kAsyncRow = *ps::Consistency::parse("async");

TEST(Circumstances, WarnOfStepsThatAreAllEquallyLongWhereThatDecidesBetweenRows) {
  EXPECT_THAT(lines_of_rows(simulated_base(), {kSyncRow, kAsyncRow}),
              Contains(HasSubstr("equally long in every step")));
  EXPECT_THAT(lines_of_rows(simulated_base(), {kSyncRow}), IsEmpty());
  EXPECT_THAT(lines_of_rows(simulated_base(), {kAsyncRow}), IsEmpty());
  RunRequest drawn = simulated_base();
  drawn.stragglers = *worker::Stragglers::parse("all:exp:5");
  EXPECT_THAT(lines_of_rows(drawn, {kSyncRow, kAsyncRow}), Not(Contains(HasSubstr("equally long"))));
  RunRequest real = simulated_base();
  real.cluster = ClusterKind::kReal;
  EXPECT_THAT(lines_of_rows(real, {kSyncRow, kAsyncRow}), Not(Contains(HasSubstr("equally long"))));
}

TEST(Circumstances, WarnOfTheRateThatAProgramGivesToRowsWithMoreUpdates) {
  RunRequest program = simulated_base();
  program.command = {"python", "train.py"};
  const std::string warning = "row makes an update of each of 4 workers' gradients";
  EXPECT_THAT(lines_of_rows(program, {kSyncRow, kAsyncRow}), Contains(HasSubstr(warning)));
  EXPECT_THAT(lines_of_rows(program, {kAsyncRow}), Not(Contains(HasSubstr(warning))));
  EXPECT_THAT(lines_of_rows(simulated_base(), {kSyncRow, kAsyncRow}), Not(Contains(HasSubstr(warning))))
      << "whose rates a comparison sets";
}

TEST(Circumstances, WarnOfServersOnHostsThatOtherRowsDoNotHave) {
  RunRequest base = simulated_base();
  const auto lines_beside_allreduce = [&base] {
    std::vector<PlannedRun> runs;
    for (const Mode mode : {Mode::kAllreduce, Mode::kPs}) {
      base.mode = mode;
      base.servers = mode == Mode::kPs ? 2 : 1;
      runs.push_back({.label = mode == Mode::kPs ? "ps" : "allreduce", .config = resolved(base)});
    }
    return circumstances_of(runs, base, {}, 2);
  };
  EXPECT_THAT(lines_beside_allreduce(),
              Contains(HasSubstr("ps runs on 6 hosts and not on its workers' 4; --hosts=4x1")));
  base.hosts = *parse_hosts("4x1");
  EXPECT_THAT(lines_beside_allreduce(), Not(Contains(HasSubstr("hosts of their own"))));
  base.hosts.clear();
  base.colocated = true;
  EXPECT_THAT(lines_beside_allreduce(), Not(Contains(HasSubstr("hosts of their own"))));
  base.spare_servers = 1;
  EXPECT_THAT(lines_beside_allreduce(), Contains(HasSubstr("ps runs on 5 hosts and not on its workers' 4")));
  base.colocated = false;
  base.cluster = ClusterKind::kReal;
  EXPECT_THAT(lines_beside_allreduce(), Not(Contains(HasSubstr("hosts of their own"))));
}

TEST(Circumstances, SayWhatIsTheSameInAllRowsAndNotWhatIsVaried) {
  RunRequest base;
  base.workers = 2;
  base.stragglers = *worker::Stragglers::parse("1:4x");
  EXPECT_THAT(lines_of_rows(base, {kSyncRow}), Contains("straggler 1:4x, in all modes but local"));
  EXPECT_THAT(lines_of_rows(base, {kSyncRow}, {"straggler"}), IsEmpty());
}

TEST(Circumstances, WarnWhereALinkIsSharedOtherwiseThanARealOne) {
  RunRequest fifo = simulated_base();
  fifo.network = simulation::NetworkModel::kFifo;
  EXPECT_THAT(lines_of_rows(fifo, {kSyncRow}), Contains(HasSubstr("beware: --network=fifo passes whole messages")));
  fifo.workers = 1;
  EXPECT_THAT(lines_of_rows(fifo, {kSyncRow}), Not(Contains(HasSubstr("whole messages"))));
  RunRequest emulated;
  emulated.workers = 4;
  emulated.transport = TransportKind::kTcp;
  emulated.shape = *LinkShape::parse("100mbit");
  EXPECT_THAT(lines_of_rows(emulated, {kSyncRow}), Not(Contains(HasSubstr("real packets"))));
  EXPECT_THAT(lines_of_rows(emulated, {kAsyncRow}),
              Contains(HasSubstr("beware: --shape gives connections equal shares")));
}

TEST(Circumstances, WarnOfACurveOfSharedCores) {
  RunRequest base;
  base.workers = 3;
  EXPECT_THAT(lines_of_rows(base, {kSyncRow}, {"workers"}), Contains(HasSubstr("share this machine's 2 cores")));
  EXPECT_THAT(lines_of_rows(base, {kSyncRow}), IsEmpty()) << "no curve is drawn";
  base.workers = 2;
  EXPECT_THAT(lines_of_rows(base, {kSyncRow}, {"workers"}), IsEmpty());
}

}  // namespace
}  // namespace syncopate::experiments
