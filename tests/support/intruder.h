// Intruder: a process without a run's keys that attacks it: of another user where the test may start one.
#pragma once

#include <sys/types.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "common/clock.h"
#include "common/os/file_descriptor.h"

namespace syncopate::testing_support {

class Intruder {
 public:
  // What it does, and what it has to tell of that.
  using Deed = std::function<nlohmann::json()>;

  // Whose process it is. Of another user wherever that can be: where the test is root, and in a network of its own, in
  // which an intruder meets nobody else's runs.
  enum class User { kAnother, kOwn };

  // Starts it. It has no descriptor of the test's, may open `descriptors` files, and dies with the test.
  explicit Intruder(const Deed& deed, User user = User::kAnother, unsigned descriptors = 1024);
  ~Intruder();
  Intruder(const Intruder&) = delete;
  Intruder& operator=(const Intruder&) = delete;

  // "user 65534", or "the run's own user, without its keys".
  static std::string name_of(User user);

  // Called by the deed, once: it is as far as the test waits for.
  static void say_ready();
  // Waits for that. Past `limit` the test has failed.
  void wait_until_ready(Duration limit);
  // Waits for its end, and returns what it told. Past `limit` it is killed, and the test has failed.
  nlohmann::json told(Duration limit);
  // Goes on without it.
  void end();

 private:
  // Whether there is more of what it tells, within that time.
  bool hear(TimePoint deadline);

  pid_t pid_ = -1;
  FileDescriptor words_;
  std::string heard_;  // of what it tells
};

}  // namespace syncopate::testing_support
