// syncopate-server: a parameter server of a job (library/server.h). The package starts it.
#include "library/server.h"

#include <unistd.h>

#include <cstdio>

int main(int argc, char**) {
  if (argc > 1 || isatty(STDIN_FILENO) != 0) {
    std::fputs(
        "syncopate-server is started by rank 0 of a job under parameter servers; it is told what to do by a pipe\n",
        stderr);
    return 2;
  }
  return syncopate::library::run_server();
}
