// Jobs of C++ programs, two ranks in processes of their own, while a process that knows no secret reaches the address
// at which they meet and takes places there: it is told nothing, no rank connects to it, and training goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "common/os/socket_user.h"
#include "common/os/tcp_socket.h"
#include "library/rendezvous_server.h"
#include "library/syncopate/syncopate.h"
#include "library/tcp_rendezvous.h"
#include "library/text_frame.h"
#include "tests/support/slowness.h"

namespace syncopate::library {
namespace {

using testing::HasSubstr;

constexpr int kDeadlineMs = 60'000 * testing_support::kSlowness;
constexpr uid_t kNobody = 65534;
constexpr float kMark = 1234.5f;

FileDescriptor listener_at(std::uint16_t port = 0) {
  Result<FileDescriptor> listener = listen_over_tcp(*SocketAddress::of_host("127.0.0.1", port));
  EXPECT_TRUE(listener.ok()) << listener.status().message();
  return std::move(*listener);
}

std::string free_address() { return SocketAddress::of_socket(listener_at().get()).to_string(); }

// Trains for some steps, and returns what went wrong; nothing did if that is empty.
std::string train(int rank, const std::string& address, api::Mode mode) {
  auto job = api::init({.rank = rank,
                        .size = 2,
                        .address = address,
                        .wire = api::Wire::kSockets,
                        .timeout = std::chrono::milliseconds(kDeadlineMs / 2)});
  if (!job.ok()) return job.status().message();
  api::ParamLayout layout;
  layout.add("weights", {4096});
  auto strategy = job->connect(layout, {.mode = mode, .consistency = "sync"});
  if (!strategy.ok()) return strategy.status().message();
  std::ranges::fill(strategy->weights(0), kMark);
  if (const api::Status joined = strategy->join(); !joined.ok()) return joined.message();
  for (int step = 0; step < 5; ++step) {
    strategy->begin_step(0.5);
    std::ranges::fill(strategy->gradients(0), 1.0f);
    strategy->gradient_ready(0);
    if (const auto stats = strategy->finish_step(); !stats.ok()) return stats.status().message();
  }
  const bool is_right = std::ranges::all_of(strategy->weights(0), [](float each) { return each == kMark - 2.5f; });
  if (const api::Status left = strategy->leave(); !left.ok()) return left.message();
  if (const api::Status left = job->leave(); !left.ok()) return left.message();
  return is_right ? "" : "other weights than without an intruder";
}

// A process, and what it says at its end.
class Child {
 public:
  explicit Child(const std::function<std::string()>& body) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    pid_ = fork();
    if (pid_ == 0) {
      close(ends[0]);
      const std::string text = body();
      (void)!write(ends[1], text.data(), text.size());
      _exit(0);
    }
    close(ends[1]);
    words_ = FileDescriptor(ends[0]);
  }
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  // Returns what it has said, once it has ended.
  std::string said() {
    std::string text;
    char part[1024];
    while (true) {
      pollfd item{words_.get(), POLLIN, 0};
      if (poll(&item, 1, kDeadlineMs) <= 0) return "it has not ended in time";
      const ssize_t count = read(words_.get(), part, sizeof(part));
      if (count <= 0) return text;
      text.append(part, static_cast<std::size_t>(count));
    }
  }

 private:
  pid_t pid_ = -1;
  FileDescriptor words_;
};

// Connects to `address`, once somebody listens there, and says `texts` as a member does.
FileDescriptor say_at(const std::string& address, const std::vector<std::string>& texts) {
  const SocketAddress place = *SocketAddress::parse(address);
  for (int tries = 0; tries < kDeadlineMs / 10; ++tries) {
    FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (connect(socket.get(), place.get(), place.size()) == 0) {
      const std::string frame = frame_of(texts);
      EXPECT_EQ(send(socket.get(), frame.data(), frame.size(), MSG_NOSIGNAL), static_cast<ssize_t>(frame.size()));
      return socket;
    }
    poll(nullptr, 0, 10);
  }
  ADD_FAILURE() << "nobody listens at " << address;
  return {};
}

class IntrudedJob : public testing::TestWithParam<api::Mode> {};

INSTANTIATE_TEST_SUITE_P(Modes, IntrudedJob, testing::Values(api::Mode::kAllReduce, api::Mode::kParameterServers),
                         [](const auto& mode) {
                           return mode.param == api::Mode::kAllReduce ? "AllReduce" : "ParameterServers";
                         });

TEST_P(IntrudedJob, GivesNoPlaceToWhoKnowsNoSecret) {
  const std::string address = free_address();
  const FileDescriptor trap = listener_at();
  const std::string here = SocketAddress::of_socket(trap.get()).to_string();
  Child first([&] { return train(0, address, GetParam()); });
  // Before rank 1 and the servers are there.
  std::vector<FileDescriptor> taken;
  const bool has_server = GetParam() == api::Mode::kParameterServers;
  for (int member = 0; member < (has_server ? 3 : 2); ++member) {
    taken.push_back(say_at(
        address, {"1/strategy1", std::to_string(member), has_server ? "3" : "2", (has_server ? "tcp://" : "") + here}));
    taken.push_back(say_at(address, {"1/main", std::to_string(member % 2), "2", here}));
    taken.push_back(say_at(address, {"1/strategy1/servers", "0", "9", "0 1"}));
  }
  Child second([&] { return train(1, address, GetParam()); });
  // A place that is taken before the ranks have a secret is lost again, but for who asks in the same moment. The rank
  // that finds it lost names the intruder; the other may have heard only that this rank is gone.
  const std::string said[] = {first.said(), second.said()};
  const auto names = [](const std::string& words) { return words.find("most likely an intruder") != words.npos; };
  if (!said[0].empty() || !said[1].empty()) {
    EXPECT_TRUE(names(said[0]) || names(said[1])) << said[0] << '\n' << said[1];
  }
  for (const std::string& words : said) {
    EXPECT_TRUE(words.empty() || names(words) || words.find(" is gone") != words.npos) << words;
  }
  pollfd item{trap.get(), POLLIN, 0};
  EXPECT_EQ(poll(&item, 1, 0), 0) << "a process of the job has connected to the intruder";
}

TEST(IntrudedPlace, IsNamedWhereAnotherUserHasTakenARanksPlace) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to be another user";
  const std::string address = free_address();
  const auto server = RendezvousServer::start(address);
  ASSERT_TRUE(server.ok()) << server.status().message();
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  Child other([&] {
    if (setresuid(kNobody, kNobody, kNobody) != 0) return "setresuid";
    const FileDescriptor taken = say_at(address, {"1/ranks", "1", "2", "not a rank"});
    (void)!write(ready[1], "x", 1);
    pollfd item{taken.get(), POLLIN, 0};
    poll(&item, 1, kDeadlineMs);
    return "";
  });
  pollfd item{ready[0], POLLIN, 0};
  ASSERT_EQ(poll(&item, 1, kDeadlineMs), 1);
  const auto rank = TcpRendezvous::make(address, "1/");
  const auto values =
      (*rank)->exchange("ranks", 1, 2, "a rank", SteadyClock().now() + std::chrono::milliseconds(kDeadlineMs));
  EXPECT_THAT(values.status().message(),
              HasSubstr("rank 1 has come twice (first came a process of " + describe_user(kNobody) + ")"));
  close(ready[0]);
  close(ready[1]);
}

TEST(IntrudedPlace, SaysWhoListensWhereRank0Would) {
  const FileDescriptor taken = listener_at();
  const api::Status status =
      api::init({.rank = 0, .size = 2, .address = SocketAddress::of_socket(taken.get()).to_string()}).status();
  EXPECT_THAT(status.message(), HasSubstr("a process of " + describe_user(geteuid()) + " listens there"));
}

}  // namespace
}  // namespace syncopate::library
