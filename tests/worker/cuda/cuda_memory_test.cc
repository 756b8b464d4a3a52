// That memory which grows is replaced, not added to.
#include <gtest/gtest.h>

#include "tests/support/shadow_device.h"
#include "worker/backend/cuda/cuda_context.h"
#include "worker/backend/cuda/host_exchange.h"

namespace syncopate::worker {
namespace {

using testing_support::ShadowDevice;

TEST(CudaContext, HasRoomForTheLargestWorkspaceAlone) {
  ShadowDevice device;
  device.limit_memory(3000);  // not for 1000 and 2500
  CudaContext context{.device = &device};
  for (const std::size_t bytes : {1000, 2500, 2000}) {
    ASSERT_TRUE(context.reserve(bytes).ok());
    EXPECT_GE(context.workspace.size(), bytes);
    EXPECT_EQ(device.memory().allocated, context.workspace.size());
  }
  EXPECT_EQ(context.reserve(4000).code(), Code::kResourceExhausted);
  EXPECT_TRUE(context.workspace.empty());
}

TEST(HostExchange, HasRoomForTheLargestTensorAlone) {
  ShadowDevice device;
  const std::span<std::byte> tensor = *device.allocate(1000);
  HostExchange exchange(device, std::move(*device.make_event()), std::chrono::seconds(1));
  for (const std::size_t bytes : {400, 1000, 600}) {
    const std::vector<std::byte> host(bytes, static_cast<std::byte>(bytes % 251));
    ASSERT_TRUE(exchange.upload(host, tensor.first(bytes)).ok());
    const Result<std::span<const std::byte>> view = exchange.view(tensor.first(bytes));
    ASSERT_TRUE(view.ok());
    EXPECT_TRUE(std::ranges::equal(*view, host));
  }
  EXPECT_EQ(device.memory().allocated, 2 * tensor.size());
}

}  // namespace
}  // namespace syncopate::worker
