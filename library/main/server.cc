// syncopate-server: a parameter server of a job (library/server.h). The package starts it.
#include "library/server.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <iostream>
#include <string>

#include "common/os/signal_actions.h"
#include "common/text/log.h"

int main(int argc, char**) {
  using namespace syncopate;
  if (argc > 1 || isatty(STDIN_FILENO) != 0) {
    std::fputs(
        "syncopate-server is started by rank 0 of a job under parameter servers; it is told what to do by a pipe\n",
        stderr);
    return 2;
  }
  // It ends with the rank that has started it, however that ends, and not by Ctrl-C, which a terminal sends to both.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::signal(SIGINT, SIG_IGN);
  let_writes_fail();
  Result<library::ServerPlan> plan = library::ServerPlan::read(std::cin);
  Status status = plan.status();
  if (status.ok()) {
    start_log(fmt::format("server {}", plan->server), "syncopate %n: %v");
    if (getppid() != plan->parent) return 1;  // it was gone before
    library::ParentRendezvous rendezvous(std::cin, std::cout);
    ToldTrace traced;
    const Result<ToldServer> told = library::serve(*plan, rendezvous, std::cin, traced);
    status = told.status();
    if (told.ok() && plan->tells)
      std::cout << library::traced_lines(traced) << library::served_line(*told) << std::flush;
  }
  if (status.ok()) return 0;
  log_error("{}", status.message());
  return 1;
}
