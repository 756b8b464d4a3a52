#include "common/os/flush_denormals.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace syncopate {

#if defined(__x86_64__)
// MXCSR's flush-to-zero (results) and denormals-are-zero (operands).
constexpr unsigned kFlushToZero = 0x8000;
constexpr unsigned kDenormalsAreZero = 0x0040;

FlushDenormals::FlushDenormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | kFlushToZero | kDenormalsAreZero); }
FlushDenormals::~FlushDenormals() { _mm_setcsr(before_); }
#else
FlushDenormals::FlushDenormals() : before_(0) {}
FlushDenormals::~FlushDenormals() = default;
#endif

}  // namespace syncopate
