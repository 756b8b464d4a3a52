// A run as resolve() makes it of a request, where no host has more than processors unless the request says so.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "experiments/config/resolution.h"

namespace syncopate::experiments {

inline ResolvedRun resolved(const RunRequest& request, const std::string& stamp = "") {
  const Placement placement{.device = request.device.value_or(DeviceKind::kCpu), .share_gpu = request.share_gpu};
  const Result<ResolvedRun> run = resolve(request, placement, stamp);
  EXPECT_TRUE(run.ok()) << run.status().message();
  return run.ok() ? *run : presumed(request);
}

}  // namespace syncopate::experiments
