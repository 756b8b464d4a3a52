// What tests of the software GPU's own share: two streams, some floats, and faults that are expected.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace software_gpu {

class OwnTest : public testing::Test {
 protected:
  static constexpr int kFloats = 4;

  OwnTest();
  ~OwnTest() override;  // no fault may be left

  // Those that were found and not taken. A call makes one once in a process.
  static std::vector<std::string>& faults();
  // Takes the only one.
  static std::string fault();

  cudaStream_t one_{}, two_{};
  cudaEvent_t fork_{}, join_{};
  float* device_ = nullptr;  // kFloats zeros
  float* pinned_ = nullptr;  // 2 kFloats
};

}  // namespace software_gpu
