// What tests on a GPU stand on: a device, or the reason why they are skipped; and work that lasts as long as a test
// wants.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <span>
#include <vector>

#include "common/device/cuda/cuda_device.h"
#include "common/device/cuda/cuda_handles.h"
#include "common/device/device.h"

namespace syncopate::testing_support {

inline bool all_are(std::byte value, std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [=](std::byte byte) { return byte == value; });
}

// Holds up a stream: what is given to it behind shut() waits for open(). At most half a minute, so that a test that
// fails ends. Must not be destroyed before the stream's work is done.
class Gate {
 public:
  void shut(Stream& stream) { ASSERT_EQ(cudaLaunchHostFunc(raw(stream), &Gate::wait, this), cudaSuccess); }
  void open() {
    if (!std::exchange(open_, true)) opened_.set_value();
  }

 private:
  static void wait(void* gate) { static_cast<Gate*>(gate)->passage_.wait_for(std::chrono::seconds(30)); }

  std::promise<void> opened_;
  std::shared_future<void> passage_ = opened_.get_future().share();
  bool open_ = false;
};

class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<Device>> opened = open_cuda_device(0);
    if (!opened.ok() && opened.status().code() == Code::kNotFound) {
      GTEST_SKIP() << "no GPU: " << opened.status().message();
    }
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    device_ = std::move(*opened);
  }

  void TearDown() override {
    gate_.open();
    device_.reset();
  }

  Device& device() { return *device_; }
  Stream& compute() { return device_->compute(); }

  std::unique_ptr<Stream> make_stream() { return std::move(*device_->make_stream()); }
  std::unique_ptr<Event> make_event() { return std::move(*device_->make_event()); }

  static TimePoint soon() { return SteadyClock().now() + std::chrono::seconds(20); }

  // All that was given to `stream`.
  Status finish(Stream& stream) {
    const std::unique_ptr<Event> end = make_event();
    stream.record(*end);
    return device_->wait(*end, soon());
  }

  template <typename T>
  std::span<T> upload(const std::vector<T>& host) {
    const Result<std::span<std::byte>> memory = device_->allocate(host.size() * sizeof(T));
    EXPECT_TRUE(memory.ok()) << memory.status().message();
    if (!memory.ok()) return {};
    compute().copy_to_device(std::as_bytes(std::span(host)), *memory);
    const Status status = finish(compute());
    EXPECT_TRUE(status.ok()) << status.message();
    return {reinterpret_cast<T*>(memory->data()), host.size()};
  }

  template <typename T>
  std::vector<T> download(std::span<const T> memory) {
    std::vector<T> host(memory.size());
    compute().copy_to_host(std::as_bytes(memory), std::as_writable_bytes(std::span(host)));
    const Status status = finish(compute());
    EXPECT_TRUE(status.ok()) << status.message();
    return host;
  }

  Gate gate_;  // closed at first; the device waits for it, and it outlives the device

 private:
  std::unique_ptr<Device> device_;
};

}  // namespace syncopate::testing_support
