#include "tests/support/intruder.h"

#include <grp.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exception>

#include "tests/support/ordinary_user.h"
#include "tests/support/private_network.h"

namespace syncopate::testing_support {
namespace {

constexpr int kWords = 3;  // where it tells

bool is_another(Intruder::User user) { return user == Intruder::User::kAnother && can_become_another_user(); }

// In the new process.
[[noreturn]] void live(const Intruder::Deed& deed, Intruder::User user, unsigned descriptors, int words) {
  if (dup2(words, kWords) != kWords) _exit(1);
  closefrom(kWords + 1);
  const rlimit files{.rlim_cur = descriptors, .rlim_max = descriptors};
  setrlimit(RLIMIT_NOFILE, &files);
  if (is_another(user) && (setgroups(0, nullptr) != 0 || setresgid(kNobody, kNobody, kNobody) != 0 ||
                           setresuid(kNobody, kNobody, kNobody) != 0)) {
    _exit(1);
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGPIPE, SIG_IGN);
  nlohmann::json told;
  try {
    told = deed();
  } catch (const std::exception& error) {
    told["error"] = error.what();
  }
  const std::string text = told.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t bytes = write(kWords, text.data() + sent, text.size() - sent);
    if (bytes <= 0) break;
    sent += static_cast<std::size_t>(bytes);
  }
  _exit(0);
}

}  // namespace

std::string Intruder::name_of(User user) {
  return is_another(user) ? "user " + std::to_string(kNobody) : "the run's own user, without its keys";
}

Intruder::Intruder(const Deed& deed, User user, unsigned descriptors) {
  int ends[2];
  if (pipe(ends) != 0) {
    ADD_FAILURE() << "no pipe";
    return;
  }
  words_ = FileDescriptor(ends[0]);
  const FileDescriptor there(ends[1]);
  pid_ = fork();
  if (pid_ == 0) live(deed, user, descriptors, there.get());
}

Intruder::~Intruder() { end(); }

void Intruder::end() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

void Intruder::say_ready() { (void)!write(kWords, "\n", 1); }

void Intruder::wait_until_ready(Duration limit) {
  const TimePoint deadline = SteadyClock().now() + limit;
  while (heard_.empty() && hear(deadline)) {
  }
  EXPECT_TRUE(heard_.starts_with('\n')) << "the intruder was not ready: " << heard_;
}

bool Intruder::hear(TimePoint deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock().now());
  pollfd item{.fd = words_.get(), .events = POLLIN, .revents = 0};
  if (left.count() <= 0 || poll(&item, 1, static_cast<int>(left.count())) <= 0) {
    ADD_FAILURE() << "the intruder takes too long";
    return false;
  }
  char part[4096];
  const ssize_t bytes = read(words_.get(), part, sizeof(part));
  if (bytes > 0) heard_.append(part, static_cast<std::size_t>(bytes));
  return bytes > 0;
}

nlohmann::json Intruder::told(Duration limit) {
  const TimePoint deadline = SteadyClock().now() + limit;
  while (hear(deadline)) {
  }
  end();
  const nlohmann::json told = nlohmann::json::parse(heard_, nullptr, false);
  EXPECT_TRUE(told.is_object() && !told.contains("error")) << "the intruder could not do its worst: " << heard_;
  return told.is_object() ? told : nlohmann::json::object();
}

}  // namespace syncopate::testing_support
