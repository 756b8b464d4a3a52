#include "common/os/large_blocks.h"

#include <malloc.h>

namespace syncopate {

void keep_large_blocks() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_ARENA_MAX, 1);  // other threads' arenas are too small for such blocks
}

}  // namespace syncopate
