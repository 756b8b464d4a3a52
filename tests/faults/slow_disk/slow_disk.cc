// A disk that is busy for as long as a test wants: preloaded into a program, whose fsync() this is. It waits while
// there is a file of the name that BUSY_DISK says.
#include <dlfcn.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>

extern "C" int fsync(int descriptor) {
  static const auto real = reinterpret_cast<int (*)(int)>(dlsym(RTLD_NEXT, "fsync"));
  static const char* const busy = std::getenv("BUSY_DISK");
  const timespec slice{.tv_sec = 0, .tv_nsec = 10'000'000};
  while (busy != nullptr && access(busy, F_OK) == 0) nanosleep(&slice, nullptr);
  return real(descriptor);
}
