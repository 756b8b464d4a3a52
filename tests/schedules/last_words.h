// LastWords: what this process says if a signal ends it, or a deadline passes, in the middle of a schedule.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "common/clock.h"

namespace syncopate::experiments {

class LastWords {
 public:
  // Past `limit` of wall-clock time the process is aborted.
  explicit LastWords(Duration limit);
  ~LastWords();

  // From here on, what the process says.
  void set(const std::string& words);
  bool is_late() const;

 private:
  const TimePoint deadline_;
  std::mutex mutex_;
  std::condition_variable_any ended_;
  std::jthread watch_;
};

}  // namespace syncopate::experiments
