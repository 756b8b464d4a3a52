#include "common/device/cuda/cuda_device.h"

#include <gmock/gmock.h>

#include <thread>

#include "common/device/gpu_inventory.h"
#include "tests/common/cuda/gpu_test.h"

namespace syncopate {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing_support::all_are;

using CudaDevice = testing_support::GpuTest;

std::vector<std::byte> pattern(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
  return bytes;
}

// Needs no GPU.
TEST(OpenCudaDevice, WhatIsNotThereIsNotFoundAndSaysWhy) {
  for (int index : {-1, 4096}) {
    const Result<std::unique_ptr<Device>> device = open_cuda_device(index);
    ASSERT_FALSE(device.ok());
    EXPECT_EQ(device.status().code(), Code::kNotFound);
    EXPECT_NE(device.status().message(), "");
  }
}

TEST_F(CudaDevice, SaysWhatItIs) {
  const Gpu gpu = find_gpus()->front();
  EXPECT_THAT(device().description(), HasSubstr(gpu.name + " (GPU 0, "));
  EXPECT_EQ(gpu_index(device()), 0);
}

TEST_F(CudaDevice, MemoryIsZeroedAndAligned) {
  for (std::size_t size : {std::size_t{1}, std::size_t{1000}, std::size_t{3} << 20}) {
    // What lay there before must not show: the second memory is what the first device gave back.
    for (int round = 0; round < 2; ++round) {
      const std::unique_ptr<Device> other = std::move(*open_cuda_device(0));
      const Result<std::span<std::byte>> memory = other->allocate(size);
      ASSERT_TRUE(memory.ok());
      ASSERT_EQ(memory->size(), size);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory->data()) % 256, 0u);
      const Result<std::span<std::byte>> host = other->allocate_pinned(size);
      ASSERT_TRUE(host.ok());
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(host->data()) % 256, 0u);
      EXPECT_TRUE(all_are(std::byte{0}, *host));
      std::ranges::fill(*host, std::byte{1});
      const std::unique_ptr<Event> end = std::move(*other->make_event());
      other->compute().copy_to_host(*memory, *host);
      other->compute().record(*end);
      ASSERT_TRUE(other->wait(*end, soon()).ok());
      EXPECT_TRUE(all_are(std::byte{0}, *host));
      std::ranges::fill(*host, std::byte{2});
      other->compute().copy_to_device(*host, *memory);
    }
  }
}

TEST_F(CudaDevice, NoMemoryIsAnEmptySpan) {
  EXPECT_EQ(device().allocate(0)->size(), 0u);
  EXPECT_EQ(device().allocate_pinned(0)->size(), 0u);
  EXPECT_TRUE(device().pin({}).ok());
  compute().copy_to_host({}, {});
  compute().copy_to_device({}, {});
  compute().update({}, {});
  EXPECT_TRUE(finish(compute()).ok());
}

TEST_F(CudaDevice, CopiesBothWaysFromAnyMemoryOfTheHost) {
  for (std::size_t size : {std::size_t{1}, std::size_t{4097}, (std::size_t{8} << 20) + 3}) {
    const std::vector<std::byte> original = pattern(size);
    EXPECT_EQ(download(std::span<const std::byte>(upload(original))), original);

    const Result<std::span<std::byte>> there = device().allocate_pinned(size);
    const Result<std::span<std::byte>> back = device().allocate_pinned(size);
    const Result<std::span<std::byte>> memory = device().allocate(size);
    ASSERT_TRUE(there.ok() && back.ok() && memory.ok());
    std::ranges::copy(original, there->begin());
    compute().copy_to_device(*there, *memory);
    compute().copy_to_host(*memory, *back);
    ASSERT_TRUE(finish(compute()).ok());
    EXPECT_TRUE(std::ranges::equal(original, *back));
  }
}

TEST_F(CudaDevice, PinsRangesThatBeginAnywhere) {
  std::vector<std::byte> host = pattern(3 * 4096);
  // All three lie in part on the same pages.
  const std::span<std::byte> first = std::span(host).subspan(64, 1000);
  const std::span<std::byte> second = std::span(host).subspan(1064, 5000);
  const std::span<std::byte> third = std::span(host).subspan(6064, 6000);
  for (int round = 0; round < 2; ++round) {  // and again, once they have been let go
    std::vector<std::unique_ptr<PinnedRange>> pinned;
    for (std::span<std::byte> range : {first, second, third}) {
      Result<std::unique_ptr<PinnedRange>> pin = device().pin(range);
      ASSERT_TRUE(pin.ok()) << pin.status().message();
      pinned.push_back(std::move(*pin));
    }
    const Result<std::span<std::byte>> memory = device().allocate(second.size());
    ASSERT_TRUE(memory.ok());
    compute().copy_to_device(second, *memory);
    ASSERT_TRUE(finish(compute()).ok());
    EXPECT_TRUE(std::ranges::equal(download(std::span<const std::byte>(*memory)), second));
  }
  EXPECT_TRUE(device().status().ok());
}

TEST_F(CudaDevice, WhatCannotBePinnedDoesNoHarm) {
  std::vector<std::byte> host = pattern(1 << 20);
  const Result<std::unique_ptr<PinnedRange>> pinned = device().pin(host);
  ASSERT_TRUE(pinned.ok());
  const Result<std::unique_ptr<PinnedRange>> again = device().pin(host);
  ASSERT_FALSE(again.ok());
  EXPECT_THAT(again.status().message(), HasSubstr("cudaHostRegister: cudaErrorHostMemoryAlreadyRegistered"));
  EXPECT_TRUE(device().status().ok());
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  EXPECT_EQ(download(std::span<const std::byte>(upload(host))), host);
}

TEST_F(CudaDevice, TooMuchMemoryIsResourceExhaustedAndDoesNoHarm) {
  const Result<std::span<std::byte>> memory = device().allocate(find_gpus()->front().memory_bytes * 2);
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.status().code(), Code::kResourceExhausted);
  EXPECT_THAT(memory.status().message(),
              MatchesRegex("[^:]*: no room for [^;]* GB of memory; [^;]* of the [^;]* of its own memory are free"));
  EXPECT_TRUE(device().status().ok());
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  const std::vector<std::byte> original = pattern(1000);
  EXPECT_EQ(download(std::span<const std::byte>(upload(original))), original);
}

TEST_F(CudaDevice, ReleasesMemoryOnceItsWorkIsDone) {
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  const std::unique_ptr<Stream> side = std::move(*device().make_stream());
  const std::vector<std::byte> original = pattern(kBytes);
  std::vector<std::byte> back(kBytes);
  for (int round = 0; round < 3; ++round) {  // memory of earlier rounds is not kept
    const Result<std::span<std::byte>> memory = device().allocate(kBytes);
    const Result<std::span<std::byte>> host = device().allocate_pinned(kBytes);
    ASSERT_TRUE(memory.ok() && host.ok());
    EXPECT_EQ(device().memory().allocated, kBytes);
    std::ranges::copy(original, host->begin());
    side->copy_to_device(*host, *memory);
    side->copy_to_host(*memory, back);
    EXPECT_TRUE(device().release(*memory, soon()).ok());
    EXPECT_EQ(back, original);
    EXPECT_TRUE(device().release(*host, soon()).ok());
    EXPECT_EQ(device().memory().allocated, 0u);
  }
  EXPECT_TRUE(device().release({}, soon()).ok());
  std::vector<std::byte> foreign(16);
  EXPECT_EQ(device().release(foreign, soon()).code(), Code::kInternal);
  EXPECT_TRUE(device().status().ok());
}

TEST_F(CudaDevice, SaysWhetherMemoryWasRefused) {
  EXPECT_FALSE(device().memory().was_refused);
  EXPECT_GT(device().memory().free, 0u);
  EXPECT_FALSE(device().allocate(find_gpus()->front().memory_bytes * 2).ok());
  EXPECT_TRUE(device().memory().was_refused);
}

TEST_F(CudaDevice, KeepsItsFirstFailureAndIgnoresWhatComesLater) {
  const Result<std::span<std::byte>> memory = device().allocate(16);
  const Result<std::span<std::byte>> host = device().allocate_pinned(16);
  ASSERT_TRUE(memory.ok() && host.ok());
  std::ranges::fill(*host, std::byte{5});
  const std::unique_ptr<Event> event = make_event();

  compute().copy_to_host(std::span<const std::byte>(static_cast<std::byte*>(nullptr), 16), *host);
  const Status failure = device().status();
  ASSERT_FALSE(failure.ok());
  EXPECT_EQ(failure.code(), Code::kInternal);
  EXPECT_THAT(failure.message(), HasSubstr(device().description() + ": cudaMemcpyAsync (to the host): cudaError"));

  compute().copy_to_host(*memory, *host);
  compute().record(*event);
  EXPECT_TRUE(device().done(*event));
  EXPECT_EQ(device().between(*event, *event), Duration{});
  EXPECT_EQ(device().wait(*event, soon()).message(), failure.message());
  EXPECT_EQ(device().allocate(16).status().message(), failure.message());
  EXPECT_EQ(device().make_stream().status().message(), failure.message());
  EXPECT_EQ(device().make_event().status().message(), failure.message());
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);  // this failure was of the call alone
  EXPECT_TRUE(all_are(std::byte{5}, *host));
  EXPECT_EQ(device().status().message(), failure.message());

  // Another device on the same GPU knows nothing of it.
  const std::unique_ptr<Device> other = std::move(*open_cuda_device(0));
  EXPECT_TRUE(other->allocate(16).ok());
  EXPECT_TRUE(other->status().ok());
}

TEST_F(CudaDevice, ThreadsWithDevicesOfTheirOwnShareAGpu) {
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([] {
      const std::unique_ptr<Device> own = std::move(*open_cuda_device(0));
      const std::vector<std::byte> original = pattern(100'000);
      std::vector<std::byte> back(original.size());
      const Result<std::span<std::byte>> memory = own->allocate(original.size());
      ASSERT_TRUE(memory.ok());
      const std::unique_ptr<Event> end = std::move(*own->make_event());
      for (int round = 0; round < 20; ++round) {
        own->compute().copy_to_device(original, *memory);
        own->compute().copy_to_host(*memory, std::as_writable_bytes(std::span(back)));
        own->compute().record(*end);
        ASSERT_TRUE(own->wait(*end, soon()).ok());
        ASSERT_EQ(back, original);
      }
    });
  }
}

}  // namespace
}  // namespace syncopate
