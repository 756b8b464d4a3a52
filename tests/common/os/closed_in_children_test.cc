#include "common/os/closed_in_children.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <optional>

#include "common/os/file_descriptor.h"

namespace syncopate {
namespace {

constexpr int kDeadlineMs = 30'000;

struct Pair {
  Pair() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    near = FileDescriptor(ends[0]);
    far = FileDescriptor(ends[1]);
  }
  // Whether the far end is known to be closed by everybody, at once or within `milliseconds`.
  bool has_ended(int milliseconds) const {
    pollfd item{near.get(), POLLIN, 0};
    char byte = 0;
    return poll(&item, 1, milliseconds) > 0 && recv(near.get(), &byte, 1, MSG_DONTWAIT) == 0;
  }

  FileDescriptor near, far;
};

// A child that lives until it is told to end.
class Child {
 public:
  Child() : pid_(fork()) {
    if (pid_ != 0) return;
    char byte = 0;
    (void)!read(orders_.near.get(), &byte, 1);
    _exit(0);
  }
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

 private:
  Pair orders_;
  const pid_t pid_;
};

TEST(ClosedInChildren, EndsAConnectionThoughAChildLives) {
  Pair kept, hidden;
  const ClosedInChildren closed(hidden.far.get());
  const Child child;
  kept.far = FileDescriptor();
  hidden.far = FileDescriptor();
  EXPECT_TRUE(hidden.has_ended(kDeadlineMs));
  EXPECT_FALSE(kept.has_ended(0)) << "a child inherits what is not hidden from it";
}

TEST(ClosedInChildren, LeavesItsOwnProcessTheConnection) {
  Pair pair;
  const ClosedInChildren closed(pair.far.get());
  const Child child;
  EXPECT_EQ(send(pair.far.get(), "x", 1, 0), 1);
  char byte = 0;
  EXPECT_EQ(recv(pair.near.get(), &byte, 1, 0), 1);
}

TEST(ClosedInChildren, KeepsTheNumberTakenInTheChild) {
  Pair pair;
  const ClosedInChildren closed(pair.far.get());
  const pid_t pid = fork();
  if (pid == 0) {
    const int next = dup(STDIN_FILENO);
    _exit(next == pair.far.get() || write(pair.far.get(), "x", 1) != 1 ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(pair.has_ended(0));
}

TEST(ClosedInChildren, EndsWithTheObject) {
  Pair pair;
  std::optional<ClosedInChildren> closed(pair.far.get());
  closed.reset();
  const Child child;
  pair.far = FileDescriptor();
  EXPECT_FALSE(pair.has_ended(0));
}

}  // namespace
}  // namespace syncopate
