// Who connects on this host to what is not theirs: abstract names are open to everybody.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <future>

#include "common/hash.h"
#include "common/os/file_descriptor.h"
#include "common/transport/inproc_transport.h"
#include "common/transport/make_transport.h"
#include "common/transport/member_keys.h"
#include "common/transport/shm_inbox.h"
#include "common/transport/shm_memory.h"
#include "common/transport/shm_parcel.h"
#include "tests/common/transport/socket_meeting.h"
#include "tests/support/cluster.h"
#include "tests/support/test_keys.h"

namespace syncopate {
namespace {

using testing_support::KnownAddresses;
using testing_support::run_ranks;
using testing_support::soon;

constexpr uid_t kNobody = 65534;

// Connected to `name`, which does not begin with its zero byte; not open if that is refused.
FileDescriptor connected_to(const std::string& name, int type) {
  FileDescriptor socket(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX};
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const timeval patience{.tv_sec = 20};
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  return connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0 ? std::move(socket)
                                                                                         : FileDescriptor();
}

bool is_cut_off(const FileDescriptor& connection) {
  char byte;
  const ssize_t count = recv(connection.get(), &byte, 1, 0);
  return count == 0 || (count < 0 && errno == ECONNRESET);
}

// A process of another user that connects to `name`, and waits for a word or the end.
class OtherUser {
 public:
  // Returns once it is connected, or cannot be.
  OtherUser(const std::string& name, int type) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    child_ = fork();
    if (child_ == 0) {
      const FileDescriptor connection = setuid(kNobody) == 0 ? connected_to(name, type) : FileDescriptor();
      (void)!write(ends[1], "c", 1);
      _exit(connection.open() && is_cut_off(connection) ? 0 : 1);
    }
    const FileDescriptor here(ends[0]), there(ends[1]);
    char connected;
    EXPECT_EQ(read(here.get(), &connected, 1), 1);
  }

  // Whether it was connected, and cut off before it heard a word. Once.
  bool was_cut_off() const {
    int status = 0;
    waitpid(child_, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

 private:
  pid_t child_ = -1;
};

// Says where endpoint 0 listens while that still waits for the other.
class TellingRendezvous final : public Rendezvous {
 public:
  Result<std::vector<std::string>> exchange(const std::string& group, int rank, int size, const std::string& value,
                                            TimePoint deadline) override {
    if (rank == 0) listening_.set_value(value);
    return inner_.exchange(group, rank, size, value, deadline);
  }
  // What endpoint 0 listens at, once it does.
  std::string address() { return listening_.get_future().get(); }

 private:
  InProcRendezvous inner_;
  std::promise<std::string> listening_;
};

class LocalIntruder : public testing::Test {
 protected:
  // Endpoint `rank` of two over shared memory, connected on a thread of its own.
  std::future<std::unique_ptr<Transport>> endpoint(int rank) {
    return std::async(std::launch::async, [this, rank] {
      const TransportOptions options{.run_id = run_,
                                     .group = "test",
                                     .rank = rank,
                                     .size = 2,
                                     .keys = testing_support::test_keys(),
                                     .handshake_time = handshake_time_};
      Result<std::unique_ptr<Transport>> made = make_transport(TransportKind::kShm, options, rendezvous_, soon());
      EXPECT_TRUE(made.ok()) << made.status().message();
      return made.ok() ? std::move(*made) : nullptr;
    });
  }

  // Endpoints 0 and 1 hear each other, and 0 has turned away so many.
  void expect_group_works(std::future<std::unique_ptr<Transport>> first, int rejected) {
    auto second = endpoint(1);
    const std::unique_ptr<Transport> zero = first.get(), one = second.get();
    ASSERT_TRUE(zero && one);
    EXPECT_TRUE(one->send(0, "of this run", {}, nullptr, soon()).ok());
    const Result<Message> message = zero->receive(soon());
    ASSERT_TRUE(message.ok());
    EXPECT_EQ(message->header(), "of this run");
    EXPECT_EQ(zero->counters().rejected, rejected);
    EXPECT_EQ(zero->counters().dropped, 0);
  }

  // What endpoint 1 says first, with the proof that follows from these keys.
  ShmParcel hello(const RunKeys& keys) const {
    return {.kind = ShmParcel::Kind::kHello,
            .sender = 1,
            .run = hash_of(run_ + "/test"),
            .proof = MemberKeys(keys, "test").proof(1, 0)};
  }

  const std::string run_ = fmt::format("local-intruder-{}", getpid());
  Duration handshake_time_ = std::chrono::seconds(10);
  TellingRendezvous rendezvous_;
};

TEST_F(LocalIntruder, WhoKnowsAllButTheSecretIsTurnedAway) {
  auto first = endpoint(0);
  const Result<SharedMemory> inbox = SharedMemory::create(ShmInbox::bytes_for(2));
  ASSERT_TRUE(inbox.ok());
  const FileDescriptor intruder = connected_to(rendezvous_.address(), SOCK_SEQPACKET);
  ASSERT_TRUE(send_parcel(intruder.get(), hello(*RunKeys::make()), inbox->file().get()));
  expect_group_works(std::move(first), 1);
  EXPECT_TRUE(is_cut_off(intruder));
}

// Endpoint 0 knows where the other one listens, but that does not come.
TEST_F(LocalIntruder, WhoSaysNothingForLongIsTurnedAway) {
  handshake_time_ = std::chrono::milliseconds(50);
  auto first = endpoint(0);
  const FileDescriptor silent = connected_to(rendezvous_.address(), SOCK_SEQPACKET);
  const Result<std::vector<std::string>> names = rendezvous_.exchange("test", 1, 2, "nobody connects to it", soon());
  ASSERT_TRUE(names.ok());
  EXPECT_TRUE(is_cut_off(silent));
  KnownAddresses known(*names);
  const TransportOptions options{
      .run_id = run_, .group = "test", .rank = 1, .size = 2, .keys = testing_support::test_keys()};
  const auto one = make_transport(TransportKind::kShm, options, known, soon());
  const std::unique_ptr<Transport> zero = first.get();
  ASSERT_TRUE(zero && one.ok());
  EXPECT_EQ(zero->counters().rejected, 1);
}

TEST_F(LocalIntruder, WhoSaysNothingHoldsUpNobody) {
  auto first = endpoint(0);
  const std::string name = rendezvous_.address();
  const FileDescriptor silent = connected_to(name, SOCK_SEQPACKET), other = connected_to(name, SOCK_SEQPACKET);
  ASSERT_TRUE(silent.open() && other.open());
  auto second = endpoint(1);
  const std::unique_ptr<Transport> zero = first.get(), one = second.get();
  ASSERT_TRUE(zero && one);
  EXPECT_TRUE(one->send(0, "of this run", {}, nullptr, soon()).ok());
  const Result<Message> message = zero->receive(soon());
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(message->header(), "of this run");
  EXPECT_TRUE(is_cut_off(silent) && is_cut_off(other)) << "once all are connected nobody listens";
}

TEST_F(LocalIntruder, WhoSaysNoHelloIsTurnedAwayAndCounted) {
  auto first = endpoint(0);
  const FileDescriptor intruder = connected_to(rendezvous_.address(), SOCK_SEQPACKET);
  const std::string garbage(24, 'x');
  ASSERT_EQ(send(intruder.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL), static_cast<ssize_t>(garbage.size()));
  auto second = endpoint(1);
  const std::unique_ptr<Transport> zero = first.get(), one = second.get();
  ASSERT_TRUE(zero && one);
  EXPECT_EQ(zero->counters().rejected, 1);
  EXPECT_TRUE(is_cut_off(intruder));
}

TEST_F(LocalIntruder, OfAnotherUserIsTurnedAwayFromSharedMemory) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  auto first = endpoint(0);
  const OtherUser intruder(rendezvous_.address(), SOCK_SEQPACKET);
  auto second = endpoint(1);
  const std::unique_ptr<Transport> zero = first.get(), one = second.get();
  ASSERT_TRUE(zero && one);
  EXPECT_EQ(zero->counters().rejected, 1);
  EXPECT_TRUE(intruder.was_cut_off());
}

// Endpoints of one host by the two wires that have local names.
class LocalNames : public testing::TestWithParam<TransportKind> {
 protected:
  // A group of two, and where its endpoint 0 listens.
  std::string connect(const std::string& run) {
    TellingRendezvous rendezvous;
    run_ranks(2, [&](int rank) {
      const TransportOptions options{
          .run_id = run, .group = "test", .rank = rank, .size = 2, .keys = testing_support::test_keys()};
      Result<std::unique_ptr<Transport>> made = make_transport(GetParam(), options, rendezvous, soon());
      EXPECT_TRUE(made.ok()) << made.status().message();
      if (made.ok()) group_[rank] = std::move(*made);
    });
    return rendezvous.address();
  }

  void expect_message_arrives() {
    ASSERT_TRUE(group_[0] && group_[1]);
    EXPECT_TRUE(group_[1]->send(0, "of this run", {}, nullptr, soon()).ok());
    const Result<Message> message = group_[0]->receive(soon());
    EXPECT_TRUE(message.ok() && message->header() == "of this run");
  }

  std::unique_ptr<Transport> group_[2];
};

INSTANTIATE_TEST_SUITE_P(Over, LocalNames, testing::Values(TransportKind::kShm, TransportKind::kIpc),
                         [](const auto& kind) { return kind.param == TransportKind::kShm ? "Shm" : "Ipc"; });

TEST_P(LocalNames, AreNeverTooLongWhateverTheRunIsCalled) {
  connect("/home/somebody/" + std::string(300, 'o') + "/run");
  expect_message_arrives();
}

TEST_P(LocalNames, TellNothingOfTheRunAndAreNeverTheSame) {
  const std::string first = connect("a-run");
  EXPECT_THAT(first, testing::Not(testing::HasSubstr("a-run")));
  EXPECT_NE(connect("a-run"), first);
}

TEST_P(LocalNames, CannotBeTakenBeforehand) {
  const std::string run = fmt::format("squatted-{}", getpid());
  std::vector<FileDescriptor> squatters;
  for (const int rank : {0, 1}) {
    for (const int type : {SOCK_SEQPACKET, SOCK_STREAM}) {
      const std::string name = fmt::format("syncopate-{}-test-{}", run, rank);
      sockaddr_un address{.sun_family = AF_UNIX};
      std::memcpy(address.sun_path + 1, name.data(), name.size());
      squatters.emplace_back(socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
      // A socket of the second type finds the name taken.
      (void)bind(squatters.back().get(), reinterpret_cast<const sockaddr*>(&address),
                 static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size()));
      (void)listen(squatters.back().get(), 10);
    }
  }
  connect(run);
  expect_message_arrives();
}

TEST(LocalIntruderOverIpc, OfAnotherUserIsNotLetIn) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  TellingRendezvous rendezvous;
  const std::string run = fmt::format("ipc-intruder-{}", getpid());
  std::unique_ptr<Transport> group[2];
  run_ranks(2, [&](int rank) {
    const TransportOptions options{
        .run_id = run, .group = "test", .rank = rank, .size = 2, .keys = testing_support::test_keys()};
    Result<std::unique_ptr<Transport>> made = make_transport(TransportKind::kIpc, options, rendezvous, soon());
    if (made.ok()) group[rank] = std::move(*made);
  });
  ASSERT_TRUE(group[0] && group[1]);
  const std::string address = rendezvous.address(), before_name = "ipc://@";
  ASSERT_TRUE(address.starts_with(before_name)) << address;
  const OtherUser intruder(address.substr(before_name.size()), SOCK_STREAM);
  EXPECT_TRUE(intruder.was_cut_off());
  EXPECT_TRUE(group[1]->send(0, "of this run", {}, nullptr, soon()).ok());
  const Result<Message> message = group[0]->receive(soon());
  EXPECT_TRUE(message.ok() && message->header() == "of this run");
}

}  // namespace
}  // namespace syncopate
