// The data wires on one host: who knows the run's name, and with it all that is public of its messages, takes part in
// nothing.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include <cstring>

#include "common/hash.h"
#include "common/transport/socket_frame.h"
#include "common/transport/zmq_frame.h"
#include "ps/wire.pb.h"
#include "tests/support/attacked_run.h"
#include "tests/support/stranger_lines.h"

namespace syncopate::attacks {
namespace {

using testing_support::await_run;
using testing_support::ForgedLine;
using testing_support::listening_places;
using testing_support::raw_connection;
using testing_support::until_the_end;
using testing_support::VisibleRun;

constexpr std::size_t kArena = kParameters + 6;  // with its padding

// What a run without secrets tells its messages from others' by.
std::uint64_t public_hash(const VisibleRun& run) { return hash_of(run.id + "/data@0"); }

// Messages to whatever listens over ZeroMQ, in the name of a member.
class ForgedMember {
 public:
  ForgedMember(zmq::context_t& context, const std::string& place) : socket_(context, zmq::socket_type::push) {
    socket_.set(zmq::sockopt::linger, 50);
    socket_.set(zmq::sockopt::sndtimeo, 20);
    socket_.connect(place);
  }
  void send(const VisibleRun& run, std::uint32_t from, const std::string& header, const std::vector<float>& payload) {
    const ZmqPreamble preamble{
        .from = from, .run = public_hash(run), .number = number_++, .payload_bytes = payload.size() * sizeof(float)};
    zmq::message_t head(sizeof(preamble) + header.size());
    std::memcpy(head.data(), &preamble, sizeof(preamble));
    std::memcpy(head.data<char>() + sizeof(preamble), header.data(), header.size());
    const bool alone = payload.empty();
    if (!socket_.send(head, alone ? zmq::send_flags::none : zmq::send_flags::sndmore) || alone) return;
    (void)socket_.send(zmq::buffer(payload), zmq::send_flags::none);
  }

 private:
  zmq::socket_t socket_;
  std::uint64_t number_ = 0;
};

// Says to every place what `speak` does, until the run ends.
void flood(pid_t coordinator, const std::function<void(ForgedMember&, const VisibleRun&, int attempt)>& speak) {
  const VisibleRun run = await_run(coordinator);
  zmq::context_t context;
  until_the_end(coordinator, 50, [&](int attempt) {
    for (const std::string& place : listening_places(coordinator)) {
      if (place == run.control || place.starts_with("seqpacket")) continue;
      ForgedMember member(context, place);
      speak(member, run, attempt);
    }
    poll(nullptr, 0, 20);
  });
}

class DataWire : public testing::TestWithParam<const char*> {
 protected:
  // At ipc ZeroMQ cuts off whoever is of another user, and does not tell.
  static Knocked knocked() { return std::string(GetParam()) == "ipc" ? Knocked::kMaybe : Knocked::kYes; }
};
INSTANTIATE_TEST_SUITE_P(Over, DataWire, testing::Values("tcp", "ipc"));

TEST_P(DataWire, TakesNoPartOfASumFromAStranger) {
  begin_attack();
  const Flags mode{"--mode=allreduce", "--workers=2", "--collective=ring", fmt::format("--transport={}", GetParam())};
  const Outcome& outcome = undisturbed(mode);
  Program program(slow_run(mode));
  Stranger stranger([coordinator = program.pid()] {
    flood(coordinator, [](ForgedMember& member, const VisibleRun& run, int) {
      for (std::uint32_t from : {0U, 1U}) member.send(run, from, "a part", std::vector<float>(256, 1e6F));
    });
    return nlohmann::json::object();
  });
  const ProgramEnd end = program.wait(kDeadline);
  stranger.told(kDeadline);
  expect_unharmed(program, end, outcome, knocked());
}

TEST_P(DataWire, TakesNoPushFromAStranger) {
  begin_attack();
  const Flags mode{"--mode=ps", "--workers=2", "--consistency=sync", fmt::format("--transport={}", GetParam())};
  const Outcome& outcome = undisturbed(mode);
  Program program(slow_run(mode));
  Stranger stranger([coordinator = program.pid()] {
    flood(coordinator, [](ForgedMember& member, const VisibleRun& run, int attempt) {
      for (int clock = 4 * attempt + 1; clock <= 4 * attempt + 40; ++clock) {
        ps::wire::Header header;
        header.mutable_push()->set_chunk(0);
        header.mutable_push()->set_clock(clock);
        header.mutable_push()->set_version(clock - 1);
        header.mutable_push()->set_learning_rate(0.1);
        member.send(run, 1, header.SerializeAsString(), std::vector<float>(kArena, 1e-3F));
      }
    });
    return nlohmann::json::object();
  });
  const ProgramEnd end = program.wait(kDeadline);
  stranger.told(kDeadline);
  expect_unharmed(program, end, outcome, knocked());
}

// Worker 1 is held up until the stranger has said all hellos that it could say.
TEST(Sockets, KeepAMembersPlaceForIt) {
  begin_attack();
  const Flags mode{"--mode=allreduce", "--workers=2", "--collective=ring", "--transport=sockets"};
  const Outcome& outcome = undisturbed(mode);
  Program program(small_run(mode));
  const pid_t late = program.process("worker", 1);
  ASSERT_NE(late, 0);
  kill(late, SIGSTOP);
  Stranger stranger([coordinator = program.pid()] {
    const VisibleRun run = await_run(coordinator);
    std::vector<FileDescriptor> held;  // whoever closes it gives the place up
    std::int64_t heard = 0;
    const TimePoint enough = SteadyClock().now() + std::chrono::milliseconds(1500);
    for (int attempts = 0; attempts < 20 && SteadyClock().now() < enough; poll(nullptr, 0, 10)) {
      for (const std::string& place : listening_places(coordinator)) {
        if (place == run.control || place.starts_with("seqpacket")) continue;
        FileDescriptor connection = raw_connection(place);
        const Hello hello{.run = public_hash(run), .from = 1, .to = 0};
        pollfd item{connection.get(), POLLOUT, 0};
        if (!connection.open() || poll(&item, 1, 100) <= 0) continue;
        (void)send(connection.get(), &hello, sizeof(hello), MSG_NOSIGNAL);
        item.events = POLLIN;
        char answer[sizeof(Hello)];
        if (poll(&item, 1, 50) > 0 && recv(connection.get(), answer, sizeof(answer), MSG_DONTWAIT) > 0) ++heard;
        held.push_back(std::move(connection));
        ++attempts;
      }
    }
    return nlohmann::json{{"heard", heard}, {"attempts", held.size()}};
  });
  const nlohmann::json told = stranger.told(kDeadline);
  kill(late, SIGCONT);
  const ProgramEnd end = program.wait(kDeadline);
  EXPECT_GT(told.value("attempts", 0), 0);
  EXPECT_EQ(told.value("heard", 0), 0) << "a member has greeted a stranger";
  expect_unharmed(program, end, outcome);
}

}  // namespace
}  // namespace syncopate::attacks
