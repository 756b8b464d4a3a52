// FlushDenormals: makes this thread treat numbers below 1.2e-38 as zero during its life; the destructor restores the
// setting.
//
// The running means of adam and momentum decay towards zero wherever a gradient is zero (under a dead ReLU, at a pixel
// that is always blank), and processors are many times slower with the denormal numbers on that way. If the processor
// has no such mode, nothing changes.
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
