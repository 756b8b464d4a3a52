// LauncherWatch: has this process end as by SIGTERM when the launcher that has started it is gone, which then cannot
// pass on any signal.
#pragma once

#include <stop_token>
#include <thread>

namespace syncopate::experiments {

class LauncherWatch {
 public:
  LauncherWatch();

 private:
  std::jthread thread_;
};

}  // namespace syncopate::experiments
