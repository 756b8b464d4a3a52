// Stranger: a process without a run's keys that attacks it: of another user where the test may start one.
#pragma once

#include <sys/types.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "common/clock.h"
#include "common/file_descriptor.h"

namespace syncopate::testing_support {

class Stranger {
 public:
  // What it does, and what it has to tell of that.
  using Deed = std::function<nlohmann::json()>;

  // Starts it. It has no descriptor of the test's, may open `descriptors` files, and dies with the test.
  explicit Stranger(const Deed& deed, unsigned descriptors = 1024);
  ~Stranger();
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  // "user 65534", or "the run's own user, without its keys": where the test is not root, or may not have a network of
  // its own, in which a stranger cannot meet others' runs.
  static std::string who();

  // Waits for its end, and returns what it told. Past `limit` it is killed, and the test has failed.
  nlohmann::json told(Duration limit);
  // Goes on without it.
  void end();

 private:
  pid_t pid_ = -1;
  FileDescriptor words_;  // what it tells
};

}  // namespace syncopate::testing_support
