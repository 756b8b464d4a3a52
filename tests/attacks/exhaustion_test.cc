// Memory, descriptors and patience of a run are not an intruder's to use up.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <map>

#include "tests/support/attacked_run.h"
#include "tests/support/rejection_lines.h"

namespace syncopate::attacks {
namespace {

using testing_support::await_run;
using testing_support::is_alive;
using testing_support::listening_places;
using testing_support::peak_memory;
using testing_support::raw_connection;
using testing_support::until_the_end;
using testing_support::VisibleRun;

const Flags kModeOverTcp{"--mode=ps", "--workers=2", "--consistency=sync", "--transport=tcp"};
constexpr int kHeld = 1100;  // at each place: more than the usual limit of descriptors
constexpr std::size_t kMegabyte = 1 << 20;
constexpr std::size_t kFlood = 192 * kMegabyte;  // at each place
constexpr std::size_t kGrowth = 64 * kMegabyte;  // may come from it

// What a ZeroMQ peer without security says first (ZMTP 3.0), and that it is a DEALER or a PUSH socket.
std::string greeting(const std::string& type) {
  std::string text("\xff\0\0\0\0\0\0\0\x01\x7f\x03\0NULL", 16);
  text.resize(64);
  const std::string body =
      std::string("\x05READY\x0bSocket-Type", 18) + std::string("\0\0\0", 3) + static_cast<char>(type.size()) + type;
  return text + '\x04' + static_cast<char>(body.size()) + body;
}

// Sends all, as long as the other end takes it; false where it does not any more.
bool send_all(const FileDescriptor& connection, std::string_view bytes) {
  while (!bytes.empty()) {
    pollfd item{connection.get(), POLLOUT, 0};
    if (poll(&item, 1, 300) <= 0 || (item.revents & (POLLERR | POLLHUP)) != 0) return false;
    const ssize_t sent = send(connection.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN) return false;
    if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

TEST(Memory, IsNotFilledByAMessageWithoutEnd) {
  begin_attack();
  const Outcome& outcome = undisturbed(kModeOverTcp);
  Program program(slow_run(kModeOverTcp));
  Intruder intruder([coordinator = program.pid()] {
    const VisibleRun run = await_run(coordinator);
    std::map<std::string, std::size_t> taken;
    // A frame of 200 bytes, behind which more are to come.
    std::string frames;
    while (frames.size() < kMegabyte) frames += std::string("\x01\xc8", 2) + std::string(200, 'm');
    until_the_end(coordinator, 50, [&](int) {
      std::vector<std::string> places = listening_places(coordinator);
      std::ranges::partition(places, [&](const std::string& place) { return place == run.control; });
      for (const std::string& place : places) {
        if (place.starts_with("seqpacket") || taken[place] >= kFlood) continue;
        for (const char* type : {"DEALER", "PUSH"}) {
          const FileDescriptor connection = raw_connection(place);
          if (!connection.open() || !send_all(connection, greeting(type))) continue;
          while (taken[place] < kFlood && send_all(connection, frames)) taken[place] += frames.size();
        }
      }
      poll(nullptr, 0, 20);
    });
    return nlohmann::json(taken);
  });
  std::map<std::string, std::size_t> peaks;
  program.wait_until("the run has ended", [&] {
    peaks["coordinator"] = std::max(peaks["coordinator"], peak_memory(program.pid()));
    for (const auto& process : program.processes()) {
      std::size_t& peak = peaks[process.arguments.size() > 1 ? process.arguments[1] : ""];
      peak = std::max(peak, peak_memory(process.pid));
    }
    return !is_alive(program.pid());
  });
  const ProgramEnd end = program.wait(kDeadline);
  const nlohmann::json told = intruder.told(kDeadline);
  for (const auto& [process, peak] : peaks) {
    if (testing_support::kSanitized) break;  // they have memory of their own
    EXPECT_LT(peak, 96 * kMegabyte + kGrowth) << process << "; what was taken: " << told;
  }
  expect_unharmed(program, end, outcome);
}

// Connections are held until the end: what ends the run needs descriptors, too.
class HeldConnections : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Saying, HeldConnections, testing::Values("OneByte", "Nothing", "ASlowGreeting"));

TEST_P(HeldConnections, LeaveTheModelItsDescriptors) {
  begin_attack();
  const std::string what = GetParam();
  constexpr int kFewSteps = 100;  // each takes longer meanwhile
  const Outcome& outcome = undisturbed(kModeOverTcp, kFewSteps);
  Flags flags = small_run(kModeOverTcp, kFewSteps);
  flags.push_back("--fault=stop:worker1@step50+1s");  // time for them all
  // A usual limit, which the run cannot raise.
  Program program(flags, {"/usr/bin/prlimit", "--nofile=1024:1024"});
  Intruder intruder(
      [what, coordinator = program.pid()] {
        await_run(coordinator);
        const std::string hello = greeting("DEALER");
        std::vector<FileDescriptor> held;
        std::size_t said = 0;
        std::map<std::string, int> at;
        until_the_end(coordinator, 2000, [&](int attempt) {
          bool all_are_held = true;
          for (const std::string& place : listening_places(coordinator)) {
            all_are_held = all_are_held && at[place] == kHeld;
            for (int i = 0; i < 100 && at[place] < kHeld; ++i, ++at[place]) {
              held.push_back(raw_connection(place));
              if (what != "Nothing" && held.back().open()) (void)send(held.back().get(), &hello[0], 1, MSG_NOSIGNAL);
            }
          }
          if (what == "ASlowGreeting" && all_are_held && attempt % 10 == 0 && ++said < hello.size()) {
            for (const FileDescriptor& one : held) (void)send(one.get(), &hello[said], 1, MSG_NOSIGNAL | MSG_DONTWAIT);
          }
          poll(nullptr, 0, 5);
        });
        return nlohmann::json{{"held", held.size()}};
      },
      Intruder::User::kAnother, 16384);
  const ProgramEnd end = program.wait(kDeadline);
  const nlohmann::json told = intruder.told(kDeadline);
  EXPECT_GE(told.value("held", 0), kHeld);
  expect_unharmed(program, end, outcome, Knocked::kMaybe);
}

}  // namespace
}  // namespace syncopate::attacks
