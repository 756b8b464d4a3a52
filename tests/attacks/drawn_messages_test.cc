// Each mode over each wire, while an intruder throws drawn messages at every place where the run listens. Another seed:
// SYNCOPATE_ATTACK_SEED.
#include "tests/attacks/drawn_messages.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <cstdlib>

#include "tests/support/attacked_run.h"
#include "tests/support/rejection_lines.h"

namespace syncopate::attacks {
namespace {

using testing_support::await_run;
using testing_support::listening_places;
using testing_support::until_the_end;
using testing_support::VisibleRun;

struct Mode {
  std::string name;
  Flags flags;
  bool is_synchronous = true;
  Intruder::User intruder = Intruder::User::kAnother;
};
void PrintTo(const Mode& mode, std::ostream* out) { *out << mode.name; }

std::vector<Mode> modes() {
  std::vector<Mode> all{
      {"Local", {"--mode=local"}},
      {"Direct", {"--mode=allreduce", "--workers=2", "--collective=direct"}},
      {"MpirunAndMpi", {"--mode=allreduce", "--workers=2", "--launcher=mpirun", "--collective=mpi"}},
  };
  for (const char* wire : {"shm", "ipc", "tcp", "sockets"}) {
    const std::string transport = fmt::format("--transport={}", wire);
    all.push_back({fmt::format("Ring_{}", wire), {"--mode=allreduce", "--workers=2", "--collective=ring", transport}});
    all.push_back({fmt::format("PsSync_{}", wire), {"--mode=ps", "--workers=2", "--consistency=sync", transport}});
    const char* consistency = wire == std::string("shm") || wire == std::string("tcp") ? "bounded:2" : "async";
    const std::string how = fmt::format("--consistency={}", consistency);
    all.push_back({fmt::format("PsFree_{}", wire), {"--mode=ps", "--workers=2", how, transport}, false});
  }
  // The own user's processes get as far as the handshake where another's are turned away for that.
  for (const char* wire : {"shm", "ipc"}) {
    const std::string transport = fmt::format("--transport={}", wire);
    all.push_back({fmt::format("PsSync_{}_by_the_own_user", wire),
                   {"--mode=ps", "--workers=2", "--consistency=sync", transport},
                   true,
                   Intruder::User::kOwn});
  }
  return all;
}

std::uint64_t seed() {
  const char* const given = std::getenv("SYNCOPATE_ATTACK_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
}

class DrawnMessagesTest : public testing::TestWithParam<Mode> {};
const auto kNameOfMode = [](const auto& mode) { return mode.param.name; };
INSTANTIATE_TEST_SUITE_P(At, DrawnMessagesTest, testing::ValuesIn(modes()), kNameOfMode);

TEST_P(DrawnMessagesTest, ChangeNothing) {
  begin_attack(GetParam().intruder);
  fmt::print("Drawn from SYNCOPATE_ATTACK_SEED={}.\n", seed());
  const Mode& mode = GetParam();
  const bool has_mpi = mode.name.starts_with("Mpirun");
  const Outcome outcome = mode.is_synchronous ? undisturbed(mode.flags) : Outcome();
  Program program(slow_run(mode.flags));
  const auto deed = [has_mpi, coordinator = program.pid()] {
    const VisibleRun run = await_run(coordinator);
    DrawnMessages messages(run, seed());
    int thrown = 0;
    until_the_end(coordinator, 100, [&](int) {
      // Open MPI's own connections promise nothing.
      const std::vector<std::string> places =
          has_mpi ? std::vector<std::string>{run.control} : listening_places(coordinator);
      for (const std::string& place : places) {
        for (int i = 0; i < 4; ++i, ++thrown) messages.throw_at(place);
      }
      poll(nullptr, 0, 2);
    });
    return nlohmann::json{{"thrown", thrown}};
  };
  Intruder intruder(deed, mode.intruder);
  const ProgramEnd end = program.wait(kDeadline);
  const nlohmann::json told = intruder.told(kDeadline);
  EXPECT_GT(told.value("thrown", 0), 0);  // how many, the machine decides
  fmt::print("{} messages were thrown; {} intruders were counted.\n", told.value("thrown", 0), rejected_of(program));
  mode.is_synchronous ? expect_unharmed(program, end, outcome) : expect_sound(program, end, 0.5);
}

}  // namespace
}  // namespace syncopate::attacks
