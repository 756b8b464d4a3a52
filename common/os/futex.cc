#include "common/os/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace syncopate {

void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected, Duration timeout) {
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(timeout);
  const timespec time{whole.count(), (timeout - whole).count()};
  syscall(SYS_futex, &word, FUTEX_WAIT, expected, &time, nullptr, 0);
}

int futex_wake(const std::atomic<std::uint32_t>& word) {
  return static_cast<int>(syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0));
}

}  // namespace syncopate
