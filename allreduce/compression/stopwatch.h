// Stopwatch: adds up the time of some parts of an operation.
#pragma once

#include "common/clock.h"

namespace syncopate::allreduce {

class Stopwatch {
 public:
  explicit Stopwatch(const Clock& clock) : clock_(clock) {}

  // Does the work, and counts its time.
  template <typename Work>
  void time(Work&& work) {
    const TimePoint begin = clock_.now();
    work();
    total_ += clock_.now() - begin;
  }
  // The same for work that processes this many bytes.
  template <typename Work>
  void time(Processing what, std::size_t bytes, Work&& work) {
    time([&] {
      work();
      clock_.processed(what, bytes);
    });
  }
  Duration total() const { return total_; }

 private:
  const Clock& clock_;
  Duration total_{};
};

}  // namespace syncopate::allreduce
