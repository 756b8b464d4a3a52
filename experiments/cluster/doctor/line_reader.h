// LineReader: takes lines from a descriptor, each by a deadline.
#pragma once

#include <string>

#include "common/clock.h"
#include "common/status.h"

namespace syncopate::experiments {

class LineReader {
 public:
  static constexpr std::size_t kMostLine = 1 << 20;  // bytes

  // The descriptor stays open as long as this object is used.
  explicit LineReader(int descriptor) : descriptor_(descriptor) {}

  // Returns the next line, without its break. Fails with deadline exceeded, with peer lost at the end of the input, and
  // with data loss if a line does not end.
  Result<std::string> next(TimePoint deadline);

 private:
  int descriptor_;
  std::string rest_;  // what has come behind the last line
};

}  // namespace syncopate::experiments
