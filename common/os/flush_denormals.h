// Makes this thread treat numbers below 1.2e-38 as zero while it lives, and puts back what was set before.
//
// The running means of adam and momentum decay towards zero wherever a gradient is zero (under a dead ReLU, at a pixel
// that is always blank), and processors compute with the denormal numbers on that way many times slower. Where the
// processor has no such mode, nothing changes.
#pragma once

namespace syncopate {

class FlushDenormals {
 public:
  FlushDenormals();
  ~FlushDenormals();
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  unsigned before_;
};

}  // namespace syncopate
