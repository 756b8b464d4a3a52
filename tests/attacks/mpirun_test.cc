// Under mpirun a process says itself which one it is: the coordinator sends no signal to one that it has not launched.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/attacked_run.h"
#include "tests/support/rejection_lines.h"

namespace syncopate::attacks {
namespace {

using experiments::control::ToCoordinator;
using testing_support::await_run;
using testing_support::ForgedLine;
using testing_support::until_the_end;
using testing_support::VisibleRun;

// A process that has nothing to do with any run.
class Bystander {
 public:
  Bystander() : pid_(fork()) {
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (true) pause();
  }
  ~Bystander() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Bystander(const Bystander&) = delete;
  Bystander& operator=(const Bystander&) = delete;

  pid_t pid() const { return pid_; }
  bool lives() const { return waitpid(pid_, nullptr, WNOHANG | WUNTRACED) == 0; }

 private:
  const pid_t pid_;
};

TEST(Mpirun, DoesNotLetAnIntruderNameAProcessToBeKilled) {
  begin_attack();
  const Flags mode{"--mode=allreduce", "--workers=2", "--collective=ring", "--launcher=mpirun"};
  const Outcome& outcome = undisturbed(mode);
  const Bystander bystander;
  Program program(slow_run(mode));
  Intruder intruder([victim = bystander.pid(), coordinator = program.pid()] {
    const VisibleRun run = await_run(coordinator);
    zmq::context_t context;
    std::int64_t heard = 0;
    until_the_end(coordinator, 50, [&](int) {
      ForgedLine named(context, run.control, "worker-1"), other(context, run.control, "worker-0");
      named.hello(run.id, victim);
      other.hello(run.id, victim);
      ToCoordinator message;
      message.mutable_missing_worker()->set_rank(1);
      message.mutable_missing_worker()->set_waited(std::int64_t{9'000'000'000});
      other.say(message);
      named.listen(std::chrono::milliseconds(40));
      heard += named.messages();
    });
    return nlohmann::json{{"heard", heard}};
  });
  const ProgramEnd end = program.wait(kDeadline);
  const nlohmann::json told = intruder.told(kDeadline);
  EXPECT_TRUE(bystander.lives()) << "the coordinator has killed a process that is not its own";
  EXPECT_EQ(told.value("heard", 0), 0) << "the coordinator has answered";
  expect_unharmed(program, end, outcome);
}

}  // namespace
}  // namespace syncopate::attacks
