// The data wires on one host: who knows the run's name, and with it all that is public of its messages, takes part in
// nothing.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "common/hash.h"
#include "common/transport/socket_frame.h"
#include "common/transport/zmq_frame.h"
#include "ps/wire.pb.h"
#include "tests/support/attacked_run.h"
#include "tests/support/rejection_lines.h"

namespace syncopate::attacks {
namespace {

using testing_support::await_run;
using testing_support::is_alive;
using testing_support::listening_places;
using testing_support::raw_connection;
using testing_support::send_with_files;
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

TEST_P(DataWire, TakesNoPartOfASumFromAnIntruder) {
  begin_attack();
  const Flags mode{"--mode=allreduce", "--workers=2", "--collective=ring", fmt::format("--transport={}", GetParam())};
  const Outcome& outcome = undisturbed(mode);
  Program program(slow_run(mode));
  Intruder intruder([coordinator = program.pid()] {
    flood(coordinator, [](ForgedMember& member, const VisibleRun& run, int) {
      for (std::uint32_t from : {0U, 1U}) member.send(run, from, "a part", std::vector<float>(256, 1e6F));
    });
    return nlohmann::json::object();
  });
  const ProgramEnd end = program.wait(kDeadline);
  intruder.told(kDeadline);
  expect_unharmed(program, end, outcome, knocked());
}

TEST_P(DataWire, TakesNoPushFromAnIntruder) {
  begin_attack();
  const Flags mode{"--mode=ps", "--workers=2", "--consistency=sync", fmt::format("--transport={}", GetParam())};
  const Outcome& outcome = undisturbed(mode);
  // Worker 1 is late with the push of that step.
  Flags flags = small_run(mode);
  flags.push_back("--fault=stop:worker1@step50+600ms");
  Program program(flags);
  Intruder intruder([coordinator = program.pid()] {
    flood(coordinator, [](ForgedMember& member, const VisibleRun& run, int) {
      for (int clock = 48; clock <= 54; ++clock) {
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
  intruder.told(kDeadline);
  expect_unharmed(program, end, outcome, knocked());
}

// Before anybody else says a hello, an intruder says all that it can in the name of worker 1, to whoever listens.
class EarlyHello : public testing::Test {
 protected:
  using Speak = std::function<void(const FileDescriptor& connection, const VisibleRun& run, std::size_t attempt)>;

  // Worker 1 is held up until the intruder has said its hellos to the places whose names begin with `kind`.
  void expect_no_place(const std::string& wire, const std::string& kind, Intruder::User user, const Speak& speak) {
    begin_attack(user);
    const Flags mode{"--mode=allreduce", "--workers=2", "--collective=ring", "--transport=" + wire};
    const Outcome& outcome = undisturbed(mode);
    Program program(small_run(mode));
    const pid_t late = program.process("worker", 1);
    ASSERT_NE(late, 0);
    kill(late, SIGSTOP);
    Intruder intruder([&, coordinator = program.pid()] { return say_hellos(coordinator, kind, speak); }, user);
    intruder.wait_until_ready(kDeadline);
    kill(late, SIGCONT);
    const ProgramEnd end = program.wait(kDeadline);
    const nlohmann::json told = intruder.told(kDeadline);
    EXPECT_GT(told.value("attempts", 0), 0);
    expect_unharmed(program, end, outcome);
  }

 private:
  static nlohmann::json say_hellos(pid_t coordinator, const std::string& kind, const Speak& speak) {
    const VisibleRun run = await_run(coordinator);
    std::vector<FileDescriptor> held;  // whoever closes it gives the place up
    const TimePoint enough = SteadyClock().now() + std::chrono::milliseconds(1500);
    for (; held.size() < 10 && SteadyClock().now() < enough; poll(nullptr, 0, 10)) {
      for (const std::string& place : listening_places(coordinator)) {
        if (place == run.control || !place.starts_with(kind)) continue;
        FileDescriptor connection = raw_connection(place);
        pollfd item{connection.get(), POLLOUT, 0};
        if (!connection.open() || poll(&item, 1, 100) <= 0) continue;
        speak(connection, run, held.size());
        held.push_back(std::move(connection));
      }
    }
    Intruder::say_ready();
    while (is_alive(coordinator)) poll(nullptr, 0, 20);
    return nlohmann::json{{"attempts", held.size()}};
  }
};

// As a run without keys says it, and as one with keys, whose proof the intruder cannot give.
TEST_F(EarlyHello, TakesNoPlaceOverSockets) {
  expect_no_place("sockets", "tcp", Intruder::User::kAnother,
                  [](const FileDescriptor& connection, const VisibleRun& run, std::size_t attempt) {
                    Hello hello{.run = public_hash(run), .from = 1, .to = 0};
                    hello.cipher = static_cast<std::uint32_t>(attempt % 2);
                    hello.key.fill(0x42);
                    const std::string proof(20, '\0');
                    (void)send(connection.get(), &hello, sizeof(hello), MSG_NOSIGNAL);
                    (void)send(connection.get(), proof.data(), proof.size(), MSG_NOSIGNAL);
                  });
}

// The kernel tells another user's process from the run's; one of the own user is not to be believed for that alone.
// With and without room for a proof behind what is public of a hello.
TEST_F(EarlyHello, TakesNoPlaceInSharedMemory) {
  expect_no_place("shm", "seqpacket", Intruder::User::kOwn,
                  [](const FileDescriptor& connection, const VisibleRun& run, std::size_t attempt) {
                    const struct {
                      std::uint32_t kind = 1, sender = 1;
                      std::uint64_t run = 0, arena = 0;
                      char proof[16] = {};
                    } hello{.run = public_hash(run)};
                    const FileDescriptor memory(memfd_create("an inbox", MFD_CLOEXEC));
                    (void)!ftruncate(memory.get(), 1 << 20);
                    const std::string_view bytes(reinterpret_cast<const char*>(&hello), sizeof(hello));
                    const int file = memory.get();
                    send_with_files(connection, bytes.substr(0, attempt % 2 == 0 ? 24 : 40), std::span(&file, 1));
                  });
}

}  // namespace
}  // namespace syncopate::attacks
