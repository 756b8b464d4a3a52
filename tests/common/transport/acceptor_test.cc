#include "common/transport/acceptor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/transport/local_socket.h"
#include "tests/support/cluster.h"

namespace syncopate {
namespace {

using testing_support::soon;

// As many files open as there may be, while it lives.
class NoFileLeft {
 public:
  NoFileLeft() {
    getrlimit(RLIMIT_NOFILE, &usual_);
    const int next = dup(STDERR_FILENO);
    close(next);
    rlimit none = usual_;
    none.rlim_cur = static_cast<rlim_t>(next);
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoFileLeft() { setrlimit(RLIMIT_NOFILE, &usual_); }

 private:
  rlimit usual_{};
};

TEST(Acceptor, RestsWhereNoFileIsLeftAndSaysSo) {
  const std::string name = new_local_name();
  Result<FileDescriptor> listener = listen_locally(name);
  ASSERT_TRUE(listener.ok()) << listener.status().message();
  Acceptor acceptor(std::move(*listener), "an endpoint");
  EXPECT_FALSE(acceptor.accept(0).open()) << "nobody has connected";
  EXPECT_FALSE(acceptor.is_short());
  const Result<FileDescriptor> client = connect_locally(name, [] { return Status(); });
  ASSERT_TRUE(client.ok()) << client.status().message();
  {
    const NoFileLeft none;
    EXPECT_FALSE(acceptor.accept(0).open());
    EXPECT_TRUE(acceptor.is_short());
    EXPECT_EQ(acceptor.to_poll(), -1) << "it would be ready again and again";
    EXPECT_THAT(acceptor.shortage(), testing::HasSubstr("ulimit -n"));
  }
  const TimePoint deadline = soon();
  while (acceptor.to_poll() == -1 && SteadyClock().now() < deadline) poll(nullptr, 0, 5);
  EXPECT_TRUE(acceptor.accept(0).open()) << "it has waited for its turn";
  EXPECT_FALSE(acceptor.is_short());
}

TEST(LocalSockets, HaveNamesThatNobodyCanKnowBeforehand) {
  const std::string one = new_local_name(), other = new_local_name();
  EXPECT_NE(one, other);
  EXPECT_THAT(one, testing::MatchesRegex("syncopate-[0-9a-f]{32}"));
}

TEST(LocalSockets, RefuseANameThatWouldBeCutOff) {
  EXPECT_EQ(listen_locally(std::string(108, 'x')).status().code(), Code::kDataLoss);
  EXPECT_EQ(connect_locally(std::string(108, 'x'), [] { return Status(); }).status().code(), Code::kDataLoss);
  EXPECT_TRUE(listen_locally(new_local_name() + std::string(60, 'x')).ok());
}

TEST(LocalSockets, AskWhetherToGoOnWhileTooManyConnect) {
  const std::string name = new_local_name();
  Result<FileDescriptor> listener = listen_locally(name);
  ASSERT_TRUE(listener.ok());
  ASSERT_EQ(listen(listener->get(), 0), 0) << "to have room for one connection";
  const auto late = [] { return Status::deadline_exceeded("late"); };
  std::vector<FileDescriptor> waiting;
  Result<FileDescriptor> last = connect_locally(name, late);
  for (; last.ok() && waiting.size() < 100; last = connect_locally(name, late)) waiting.push_back(std::move(*last));
  EXPECT_EQ(last.status().code(), Code::kDeadlineExceeded);
}

}  // namespace
}  // namespace syncopate
