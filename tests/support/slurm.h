// Slurm: a real one of two nodes on this machine, for tests: controller, daemons and authentication, over loopback. It
// and all that it has started are gone with the object, and with the test, however that ends.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "tests/support/run_program.h"

namespace syncopate::testing_support {

class Slurm {
 public:
  // Returns why there can be none here, with what installs it; empty if there can.
  static std::string missing();

  // Starts it, and waits until it takes jobs. Requires missing() to be empty.
  Slurm();
  ~Slurm();
  Slurm(const Slurm&) = delete;
  Slurm& operator=(const Slurm&) = delete;

  // Whether it has come up; if not, the test has failed.
  bool is_up() const { return is_up_; }
  // The words in front of a command of Slurm's, or of a program that calls one.
  std::vector<std::string> before(const std::vector<std::string>& command) const;
  // What a command of Slurm's has printed, without the line break at its end.
  std::string output_of(const std::string& command) const;
  // The process of this role and rank that runs in one of its jobs; 0 if there is none.
  pid_t process(const std::string& role, int rank) const;
  const std::filesystem::path& folder() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
  FileDescriptor input_;  // of its first process, which ends with it
  pid_t pid_ = 0;
  bool is_up_ = false;
};

}  // namespace syncopate::testing_support
