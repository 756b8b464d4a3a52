// Program: the built program, run as a person runs it, with real processes that a test can find, stop and count.
//
// Results go to a folder of the test's own, digits to one that all tests share. Whatever happens, nothing that was
// started outlives the object, nor the test.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/os/file_descriptor.h"
#include "tests/support/running_processes.h"
#include "tests/support/slowness.h"

namespace syncopate::testing_support {

// Where digits are kept between tests.
std::string shared_data_dir();

// A folder that is removed with its contents.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// The flags of both, `more` behind.
std::vector<std::string> operator+(std::vector<std::string> flags, const std::vector<std::string>& more);

std::string text_of(const std::filesystem::path& file);  // empty if there is no such file
std::vector<std::string> lines_of(const std::string& text);

struct ProgramEnd {
  int exit_code = -1;  // 128 + signal if a signal ended it, as a shell says it
  std::string out;
  std::string err;
};

class Program {
 public:
  // Starts it with `flags`, behind which (but before --) come --output, --data-dir and --device=cpu unless they are
  // among them; the last two not where a program of one's own trains. `before` comes in front of the program on the
  // command line, and is to become it (as ip netns exec does).
  explicit Program(std::vector<std::string> flags, const std::vector<std::string>& before = {});
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pid_t pid() const { return pid_; }
  const std::filesystem::path& output() const { return output_; }

  // The process of this role and rank, once it is there; 0, and a failed test, if it does not come.
  pid_t process(const std::string& role, int rank);
  // All processes that it has started and that are still there.
  std::vector<RunningProcess> processes() const { return processes_of_run(pid_); }

  // Waits for the condition; false, and a failed test, if it does not come true before the program ends or a minute has
  // passed.
  bool wait_until(const std::string& what, const std::function<bool()>& condition);
  // Until steps.csv has rows of worker 0 to `workers` - 1: all of them train.
  bool wait_until_training(int workers);
  // Until nothing that it has started is left, or `limit` has passed.
  bool all_gone_within(Duration limit) const;

  void signal(int number) const;
  // Its end. Past `limit` it is killed, and the test has failed; so it has if a sanitizer has reported anything in one
  // of its processes, whose exit code says nothing once the run is ending.
  ProgramEnd wait(Duration limit = std::chrono::seconds(60) * kSlowness);

  // What it wrote. Of JSON that is not there, null.
  nlohmann::json summary() const;
  // Returns the values of all tensors, in the file's order; empty if there is no such file.
  std::vector<float> weights() const;
  std::string errors() const { return text_of(folder_.path() / "err.txt"); }
  std::string steps_csv() const { return text_of(output_ / "steps.csv"); }
  // Returns the cells of one column of a table without quotes ("steps.csv"), without its name.
  std::vector<std::string> column(const std::string& file, const std::string& name) const;

 private:
  void add_usual(std::vector<std::string>& flags) const;
  void start_program(const std::vector<std::string>& before, std::vector<std::string> flags);
  void start(const std::vector<std::string>& command);
  void expect_no_sanitizer_reports() const;

  TemporaryFolder folder_;
  std::filesystem::path output_;
  pid_t pid_ = 0;
  FileDescriptor handle_;  // readable once it has ended
  bool reaped_ = false;
};

// Starts, waits, and returns how it ended.
ProgramEnd run_program(std::vector<std::string> flags);

}  // namespace syncopate::testing_support
