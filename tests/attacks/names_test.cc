// Abstract names belong to whoever takes them first: a run depends on none that could be predicted, nor on their
// length.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>

#include "tests/support/attacked_run.h"
#include "tests/support/rejection_lines.h"

namespace syncopate::attacks {
namespace {

using testing_support::await_run;
using testing_support::is_alive;
using testing_support::TemporaryFolder;
using testing_support::VisibleRun;

// Listens at an abstract name; not open where that is taken.
FileDescriptor squatter(const std::string& name, int type) {
  FileDescriptor listener(socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof(address.sun_path) - 1);
  std::memcpy(address.sun_path + 1, name.data(), length);
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  const bool is_bound = bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), bytes) == 0;
  return is_bound && listen(listener.get(), 16) == 0 ? std::move(listener) : FileDescriptor();
}

class Name : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Over, Name, testing::Values("shm", "ipc"));

TEST_P(Name, OfTheNextMembershipCannotBeTakenBefore) {
  begin_attack();
  Flags mode{"--mode=allreduce",
             "--collective=ring",
             "--workers=3",
             "--elastic",
             "--fault=kill:worker2@step100",
             fmt::format("--transport={}", GetParam())};
  Program program(slow_run(mode));
  Intruder intruder(
      [type = std::string(GetParam()) == "shm" ? SOCK_SEQPACKET : SOCK_STREAM, coordinator = program.pid()] {
        const VisibleRun run = await_run(coordinator);
        std::vector<FileDescriptor> held;
        for (int membership_epoch = 1; membership_epoch < 20; ++membership_epoch) {
          for (int rank = 0; rank < 3; ++rank) {
            held.push_back(squatter(fmt::format("syncopate-{}-data@{}-{}", run.id, membership_epoch, rank), type));
          }
        }
        while (is_alive(coordinator)) poll(nullptr, 0, 20);
        return nlohmann::json{{"held", held.size()}};
      });
  const ProgramEnd end = program.wait(kDeadline);
  intruder.told(kDeadline);
  // Nobody has knocked at the run's own doors.
  expect_sound(program, end, 0.5, Knocked::kMaybe);
}

TEST_P(Name, OfAResultsFolderMayBeLong) {
  begin_attack();
  const Flags mode{"--mode=ps", "--workers=2", "--consistency=sync", fmt::format("--transport={}", GetParam())};
  const Outcome& outcome = undisturbed(mode);
  const TemporaryFolder folder;
  Flags flags = small_run(mode);
  flags.push_back("--output=" + (folder.path() / std::string(200, 'n')).string());
  Program program(flags);
  const ProgramEnd end = program.wait(kDeadline);
  expect_unharmed(program, end, outcome, Knocked::kMaybe);
}

}  // namespace
}  // namespace syncopate::attacks
