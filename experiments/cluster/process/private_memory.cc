#include "experiments/cluster/process/private_memory.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "experiments/cluster/host/build_facts.h"

namespace syncopate::experiments {
namespace {

// This is less than a file needs, so that no dump is written. It is also the one limit at which the kernel, which does
// not otherwise limit a pipe, passes no dump to a program either (do_coredump() in its fs/coredump.c). Zero would not
// do that.
constexpr rlim_t kNoCoreDump = 1;

}  // namespace

bool dumps_are_allowed() {
  const char* const allowed = std::getenv("SYNCOPATE_ALLOW_DUMPS");
  return allowed != nullptr && std::string_view(allowed) == "1";
}

void leave_no_core_dumps() {
  rlimit limit{};
  if (dumps_are_allowed() || getrlimit(RLIMIT_CORE, &limit) != 0) return;
  limit.rlim_cur = std::min(kNoCoreDump, limit.rlim_max);
  setrlimit(RLIMIT_CORE, &limit);
}

void keep_memory_private() {
  if (dumps_are_allowed() || !compiled_sanitizers().empty()) return;
  prctl(PR_SET_DUMPABLE, 0);
}

}  // namespace syncopate::experiments
