// A program of a person's own, for tests of run_experiment: it tells of steps and evaluations that it makes up, and
// then does what its words say.
//
//   own_program STEPS [fails:RANK | hangs:FILE | child:FILE | refuses:WORD]
//
// fails: this rank does, after its steps. hangs: rank 0 writes its process number to the file, and waits for ever,
// whoever asks it to end. child: rank 0 has a child that would sleep for an hour, writes its number to the file, and
// ends. refuses: rank 1 tells that it can do nothing where WORD is among what is asked of it, and waits for ever.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>
#include <thread>

#include "common/step_file.h"

namespace {

using namespace syncopate;  // NOLINT(google-build-using-namespace): a program of one file
using std::chrono::milliseconds;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

void tell(StepFileWriter& file, std::int64_t steps) {
  const SteadyClock clock;
  file.add(ToldFact{kParametersFact, "1234"}, clock.now());
  for (std::int64_t step = 0; step < steps; ++step) {
    const TimePoint begin = clock.now();
    std::this_thread::sleep_for(milliseconds(1));
    StepRecord record{.step = step, .end = clock.now(), .total = clock.now() - begin, .backward = milliseconds(1)};
    record.samples = 16;
    record.loss = 1.0 / static_cast<double>(step + 1);
    record.accuracy = std::numeric_limits<double>::quiet_NaN();
    file.add(record, record.end);
  }
  file.add(ToldEvaluation{.step = steps, .taken = clock.now(), .loss = 0.25, .accuracy = 0.75, .epoch = 1},
           clock.now());
}

void leave_child(const std::string& file) {
  const pid_t child = fork();
  if (child == 0) {
    sleep(3600);
    _exit(0);
  }
  std::ofstream(file) << child << std::flush;
}

void refuse(const std::string& word) {
  if ((variable("SYNCOPATE_MODE") + variable("SYNCOPATE_COMPARED")).find(word) == std::string::npos) return;
  if (variable("RANK") == "1") {
    Result<StepFileWriter> file = StepFileWriter::create(variable("SYNCOPATE_STEP_FILE"));
    file->add(ToldFact{kRefusedFact, "this program has never heard of " + word}, SteadyClock().now());
    if (!file->flush().ok()) std::abort();
  }
  while (true) pause();
}

[[noreturn]] void hang(const std::string& file) {
  std::signal(SIGTERM, SIG_IGN);
  std::ofstream(file) << getpid() << std::flush;
  while (true) pause();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string rank = variable("RANK"), what = argc > 2 ? argv[2] : "";
  if (what.starts_with("refuses:")) refuse(what.substr(8));
  {
    Result<StepFileWriter> file = StepFileWriter::create(variable("SYNCOPATE_STEP_FILE"));
    if (!file.ok()) return 9;
    tell(*file, std::atoll(argv[1]));
  }
  std::printf("rank %s of %s, %s\n", rank.c_str(), variable("WORLD_SIZE").c_str(), variable("SYNCOPATE_MODE").c_str());
  std::fflush(stdout);
  if (what == "fails:" + rank) {
    std::fprintf(stderr, "ValueError: the data is gone\n");
    return 3;
  }
  if (what.starts_with("hangs:") && rank == "0") hang(what.substr(6));
  if (what.starts_with("child:") && rank == "0") leave_child(what.substr(6));
  return 0;
}
