#include "library/tcp_rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <future>

#include "library/rendezvous_server.h"
#include "library/socket_address.h"
#include "library/text_frame.h"
#include "library/value_proof.h"
#include "tests/support/test_keys.h"

namespace syncopate::library {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using Values = Result<std::vector<std::string>>;

TimePoint in(Duration duration) { return SteadyClock().now() + duration; }

class TcpRendezvousTest : public testing::Test {
 protected:
  std::unique_ptr<TcpRendezvous> member(const std::string& address) {
    auto made = TcpRendezvous::make(address, "1/");
    EXPECT_TRUE(made.ok()) << made.status().message();
    return std::move(*made);
  }
  std::unique_ptr<TcpRendezvous> member() { return member(server_->address()); }

  // Connects to the server and sends `bytes`, as anybody may.
  FileDescriptor send_bytes(const std::string& bytes) {
    const Result<SocketAddress> address = resolve(server_->address());
    FileDescriptor socket(::socket(AF_INET, SOCK_STREAM, 0));
    EXPECT_EQ(connect(socket.get(), address->get(), address->size()), 0);
    EXPECT_EQ(send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
    return socket;
  }

  // An exchange of both members of a group works.
  void expect_exchange(const std::string& group) {
    const auto first = member(), second = member();
    std::future<Values> other =
        std::async(std::launch::async, [&] { return second->exchange(group, 1, 2, "b", in(seconds(20))); });
    const Values values = first->exchange(group, 0, 2, "a", in(seconds(20)));
    ASSERT_TRUE(values.ok()) << values.status().message();
    EXPECT_THAT(*values, ElementsAre("a", "b"));
    EXPECT_TRUE(other.get().ok());
  }

  std::unique_ptr<RendezvousServer> server_ = std::move(*RendezvousServer::start("127.0.0.1:0"));
};

TEST_F(TcpRendezvousTest, GivesAllMembersTheValuesByRank) {
  expect_exchange("ranks");
  expect_exchange("more");
  expect_exchange("ranks");  // a group that is over may begin again
}

TEST_F(TcpRendezvousTest, WaitsForAServerThatIsNotThereYet) {
  const std::string address = server_->address();
  server_.reset();
  const auto early = member(address);
  std::future<Values> values =
      std::async(std::launch::async, [&] { return early->exchange("ranks", 0, 1, "a", in(seconds(20))); });
  server_ = std::move(*RendezvousServer::start(address));
  const Values met = values.get();
  EXPECT_TRUE(met.ok()) << met.status().message();
}

TEST_F(TcpRendezvousTest, NamesWhoHasNotCome) {
  const Values values = member()->exchange("ranks", 1, 4, "b", in(milliseconds(50)));
  EXPECT_EQ(values.status().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(values.status().message(), "no word from rank 0, 2, 3");
  // Who has given up may come again.
  const auto again = member();
  EXPECT_EQ(again->exchange("ranks", 1, 4, "b", in(milliseconds(50))).status().message(), "no word from rank 0, 2, 3");
}

TEST_F(TcpRendezvousTest, RefusesASecondMemberOfTheSameRank) {
  // It is admitted before what comes after it is read, since connections are taken in order.
  const FileDescriptor waiting = send_bytes(frame_of({"1/ranks", "0", "2", "a"}));
  const Values values = member()->exchange("ranks", 0, 2, "b", in(seconds(20)));
  EXPECT_EQ(values.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(values.status().message(), HasSubstr("rank 0 has come twice"));
}

TEST_F(TcpRendezvousTest, RefusesAnotherNumberOfMembers) {
  const FileDescriptor waiting = send_bytes(frame_of({"1/ranks", "0", "2", "a"}));
  const Values values = member()->exchange("ranks", 1, 3, "b", in(seconds(20)));
  EXPECT_EQ(values.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(values.status().message(), HasSubstr("rank 1 counts 3 members, and others 2"));
}

TEST_F(TcpRendezvousTest, GivesPlacesOfAGroupWhereProofsAreRequiredToWhoHasOneAlone) {
  const RunKeys keys = testing_support::test_keys();
  const auto said = [this](const FileDescriptor& socket) {
    std::string bytes;
    for (char part[1024]; bytes.empty() || !read_frame(bytes, kLongestAnswer)->has_value();) {
      const ssize_t count = recv(socket.get(), part, sizeof(part), 0);
      if (count <= 0) return std::string("nothing");
      bytes.append(part, static_cast<std::size_t>(count));
    }
    return bytes;
  };
  const std::string refused = frame_of({"refused", "its value does not prove to be of this job"});
  const FileDescriptor early = send_bytes(frame_of({"1/ranks", "0", "2", "a"}));
  const FileDescriptor proven_early =
      send_bytes(frame_of({"1/ranks", "1", "2", with_proof(keys, place_in("ranks", 1, 2), "b")}));
  EXPECT_THAT(said(early), HasSubstr("a")) << "nothing is required yet";
  EXPECT_THAT(said(proven_early), HasSubstr("ok"));

  const FileDescriptor waiting = send_bytes(frame_of({"1/ranks", "0", "2", "a"}));
  const FileDescriptor elsewhere = send_bytes(frame_of({"2/ranks", "0", "2", "a"}));
  expect_exchange("more");  // the server has read both
  server_->require_proof("1/", keys);
  EXPECT_EQ(said(waiting), refused) << "it loses the place that it has taken";
  EXPECT_EQ(said(send_bytes(frame_of({"1/ranks", "0", "2", "a"}))), refused);
  const std::string of_another = with_proof(*RunKeys::make(), place_in("ranks", 0, 2), "a");
  EXPECT_EQ(said(send_bytes(frame_of({"1/ranks", "0", "2", of_another}))), refused);
  const std::string of_another_place = with_proof(keys, place_in("ranks", 1, 2), "a");
  EXPECT_EQ(said(send_bytes(frame_of({"1/ranks", "0", "2", of_another_place}))), refused);

  const std::string a = with_proof(keys, place_in("ranks", 0, 2), "a"),
                    b = with_proof(keys, place_in("ranks", 1, 2), "b");
  const FileDescriptor zero = send_bytes(frame_of({"1/ranks", "0", "2", a}));
  const FileDescriptor one = send_bytes(frame_of({"1/ranks", "1", "2", b}));
  EXPECT_EQ(said(zero), frame_of({"ok", a, b}));
  EXPECT_EQ(said(one), frame_of({"ok", a, b}));
  const FileDescriptor other = send_bytes(frame_of({"2/ranks", "1", "2", "b"}));
  EXPECT_EQ(said(elsewhere), frame_of({"ok", "a", "b"})) << "of another job";
}

TEST_F(TcpRendezvousTest, DropsWhatMakesNoSenseAndServesOthers) {
  std::vector<FileDescriptor> intruders;
  for (const std::string& bytes : {std::string("GET / HTTP/1.1\r\n\r\n"), std::string("sync"), frame_of({}),
                                   frame_of({"1/ranks", "0"}), frame_of({"1/ranks", "-1", "2", ""}),
                                   frame_of({"1/ranks", "2", "2", ""}), frame_of({"1/ranks", "0", "9999999", ""}),
                                   frame_of({"1/ranks", "0x", "2", ""}), std::string("syncopa1\xff\xff\xff\xff")}) {
    intruders.push_back(send_bytes(bytes));
  }
  expect_exchange("ranks");
}

TEST_F(TcpRendezvousTest, IsInterrupted) {
  const auto waiting = member();
  std::future<Values> values =
      std::async(std::launch::async, [&] { return waiting->exchange("ranks", 0, 2, "a", in(seconds(60))); });
  waiting->interrupt();
  EXPECT_EQ(values.get().status().code(), Code::kCancelled);
}

TEST_F(TcpRendezvousTest, SaysAtOnceThatAServerIsGoneOnceItHasBeenThere) {
  const auto only = member();
  ASSERT_TRUE(only->exchange("ranks", 0, 1, "a", in(seconds(20))).ok());
  server_.reset();
  const Values values = only->exchange("more", 0, 1, "a", in(seconds(60)));
  EXPECT_EQ(values.status().code(), Code::kPeerLost);
}

TEST_F(TcpRendezvousTest, RefusesAnAddressThatIsTaken) {
  const auto second = RendezvousServer::start(server_->address());
  EXPECT_EQ(second.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(second.status().message(), HasSubstr("a port that no other program has"));
}

TEST_F(TcpRendezvousTest, MeetsOverIpv6) {
  Result<std::unique_ptr<RendezvousServer>> server = RendezvousServer::start("[::1]:0");
  if (!server.ok()) GTEST_SKIP() << "no IPv6 here: " << server.status().message();
  server_ = std::move(*server);
  EXPECT_THAT(server_->address(), testing::StartsWith("[::1]:"));
  expect_exchange("ranks");
}

TEST(MeetingPlace, SaysWhatItMustBe) {
  for (const char* text : {"", "127.0.0.1", ":80", "127.0.0.1:", "127.0.0.1:70000", "127.0.0.1:80x"}) {
    EXPECT_EQ(resolve(text).status().code(), Code::kInvalidArgument) << text;
  }
  EXPECT_EQ(resolve("127.0.0.1:80")->to_string(), "127.0.0.1:80");
  EXPECT_EQ(resolve("[fd00::7]:80")->to_string(), "[fd00::7]:80");
  EXPECT_EQ(resolve("fd00::7:80")->to_string(), "[fd00::7]:80") << "as MASTER_ADDR and MASTER_PORT are put together";
}

}  // namespace
}  // namespace syncopate::library
