#include "tests/support/shadow_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <memory>
#include <set>
#include <utility>

#include "common/optimizer/update_constants.h"
#include "tests/support/shadow_update.h"

namespace syncopate::testing_support {
namespace {

constexpr std::size_t kAlignment = 256;

bool lies_in(std::span<const std::byte> range, std::span<const std::byte> memory) {
  return range.data() >= memory.data() && range.data() + range.size() <= memory.data() + memory.size();
}

bool overlap(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
}

// Every float in it is a NaN.
void poison(std::span<std::byte> memory) { std::ranges::fill(memory, std::byte{0xff}); }

}  // namespace

class ShadowDevice::ShadowEvent final : public Event {
 public:
  std::shared_ptr<ShadowPoint> point;  // null before the first record
};

class ShadowDevice::ShadowPinned final : public PinnedRange {
 public:
  ShadowPinned(ShadowDevice& device, std::span<const std::byte> range) : device_(device), range_(range) {
    device_.pinned_ranges_.push_back(range_);
  }
  ~ShadowPinned() override {
    if (device_.queues_.touches(range_)) ADD_FAILURE() << "memory is unpinned while copies still use it";
    std::erase_if(device_.pinned_ranges_, [this](auto range) { return range.data() == range_.data(); });
  }

 private:
  ShadowDevice& device_;
  std::span<const std::byte> range_;
};

class ShadowDevice::ShadowStream final : public Stream {
 public:
  explicit ShadowStream(ShadowDevice& device) : device_(device), queue_(device.queues_.add_queue()) {}

  void copy_to_host(std::span<const std::byte> device, std::span<std::byte> host) override {
    if (!device_.is_device(device)) ADD_FAILURE() << "the source of copy_to_host is not device memory";
    if (device.size() != host.size()) ADD_FAILURE() << "copy of " << device.size() << " bytes to " << host.size();
    // Where work before it still uses the memory, that work must not be disturbed.
    if (device_.failure_.ok() && !device_.capture_ && !device_.queues_.touches(host)) poison(host);
    device_.copy(queue_, device, host, host);
  }
  void copy_to_device(std::span<const std::byte> host, std::span<std::byte> device) override {
    if (!device_.is_device(device)) ADD_FAILURE() << "the target of copy_to_device is not device memory";
    if (device.size() != host.size()) ADD_FAILURE() << "copy of " << host.size() << " bytes to " << device.size();
    device_.copy(queue_, host, device, host);
  }
  void update(const OptimizerConfig& rule, const DeviceUpdate& update) override {
    const std::span<const float> gradient = update.gradient;
    const auto& [first, second, third] = update.state.memories;
    const std::span<const float> parts[] = {update.weights, gradient, first, second, third};
    for (const std::span<const float> part : parts) {
      if (!device_.is_device(std::as_bytes(part))) ADD_FAILURE() << "an update of what is not device memory";
    }
    if (gradient.size() != update.weights.size()) ADD_FAILURE() << "an update with a gradient of another length";
    if (!device_.is_device(std::as_bytes(std::span(update.constants, 1)))) {
      ADD_FAILURE() << "an update whose constants are not device memory";
    }
    if (!update.rounded_weights.empty() || update.loss_scale != nullptr) has_floats_alone();
    device_.push(queue_, [=] { shadow_update(rule, update.weights, gradient, update.state, *update.constants); }, {});
  }
  void look_for_overflow(ConstTensorSpan /*gradients*/, LossScale& /*scale*/) override { has_floats_alone(); }
  void end_step(LossScale& /*scale*/) override { has_floats_alone(); }
  void convert(ConstTensorSpan /*from*/, TensorSpan /*to*/) override { has_floats_alone(); }
  void record(Event& event) override {
    if (device_.failure_.ok()) device_.record(queue_, dynamic_cast<ShadowEvent&>(event).point);
  }
  void wait_for(const Event& event) override {
    if (device_.failure_.ok()) device_.await(queue_, dynamic_cast<const ShadowEvent&>(event).point);
  }

  std::size_t queue() const { return queue_; }

 private:
  static void has_floats_alone() { ADD_FAILURE() << "a shadow device has no 16-bit numbers: the software GPU has"; }

  ShadowDevice& device_;
  std::size_t queue_;
};

class ShadowDevice::ShadowGraph final : public Graph {
 public:
  explicit ShadowGraph(std::vector<Captured> calls) : calls(std::move(calls)) {}
  const std::vector<Captured> calls;
};

ShadowDevice::ShadowDevice(std::uint64_t seed) : queues_(seed), compute_(std::make_unique<ShadowStream>(*this)) {}
ShadowDevice::~ShadowDevice() = default;

Result<std::span<std::byte>> ShadowDevice::allocate(std::size_t bytes) { return allocate_from(memory_, bytes); }
Result<std::span<std::byte>> ShadowDevice::allocate_pinned(std::size_t bytes) {
  return allocate_from(pinned_memory_, bytes);
}

Result<std::span<std::byte>> ShadowDevice::allocate_from(std::vector<AlignedBuffer>& memory, std::size_t bytes) {
  SYNCOPATE_RETURN_IF_ERROR(failure_);
  if (bytes > memory_left_) {
    was_refused_ = true;
    return Status::resource_exhausted("shadow device: out of memory");
  }
  memory_left_ -= bytes;
  allocated_ += bytes;
  AlignedBuffer& buffer = memory.emplace_back((bytes + kAlignment) / sizeof(float) + 1);
  void* begin = buffer.data();
  std::size_t space = buffer.size() * sizeof(float);
  return std::span(static_cast<std::byte*>(std::align(kAlignment, bytes, begin, space)), bytes);
}

Status ShadowDevice::release(std::span<std::byte> memory, TimePoint /*deadline*/) {
  if (memory.empty()) return failure_;
  finish();
  SYNCOPATE_RETURN_IF_ERROR(failure_);
  if (pending() > 0) return Status::deadline_exceeded("shadow device: work not done in time");
  const auto was_in = [memory](std::vector<AlignedBuffer>& all) {
    return std::erase_if(all,
                         [memory](const AlignedBuffer& one) { return lies_in(memory, std::as_bytes(one.span())); }) > 0;
  };
  if (!was_in(memory_) && !was_in(pinned_memory_)) ADD_FAILURE() << "memory is released that is not the device's";
  memory_left_ += memory.size();
  allocated_ -= memory.size();
  return {};
}

Result<std::unique_ptr<PinnedRange>> ShadowDevice::pin(std::span<std::byte> host) {
  SYNCOPATE_RETURN_IF_ERROR(failure_);
  for (const std::span<const std::byte> range : pinned_ranges_) {
    if (overlap(range, host)) return Status::invalid_argument("shadow device: this memory is pinned already");
  }
  return std::unique_ptr<PinnedRange>(std::make_unique<ShadowPinned>(*this, host));
}

Stream& ShadowDevice::compute() { return *compute_; }

Result<std::unique_ptr<Stream>> ShadowDevice::make_stream() {
  SYNCOPATE_RETURN_IF_ERROR(failure_);
  return std::unique_ptr<Stream>(std::make_unique<ShadowStream>(*this));
}

Result<std::unique_ptr<Event>> ShadowDevice::make_event() {
  SYNCOPATE_RETURN_IF_ERROR(failure_);
  return std::unique_ptr<Event>(std::make_unique<ShadowEvent>());
}

void ShadowDevice::record(std::size_t queue, std::shared_ptr<ShadowPoint>& point) {
  if (capture_) {
    capture_->push_back({.queue = queue, .records = &point});
  } else {
    point = queues_.mark(queue);
  }
}

void ShadowDevice::await(std::size_t queue, const std::shared_ptr<ShadowPoint>& point) {
  if (!capture_) {
    if (point) queues_.push(queue, {.awaits = point});
    return;
  }
  if (std::ranges::none_of(*capture_, [&](const Captured& call) { return call.records == &point; })) {
    ADD_FAILURE() << "a stream that captures waits for an event of before";
  }
  capture_->push_back({.queue = queue, .awaits = &point});
}

void ShadowDevice::check_is_not_capturing(const char* what) const {
  if (capture_) ADD_FAILURE() << what << " in the midst of a capture";
}

Status ShadowDevice::begin_capture() {
  SYNCOPATE_RETURN_IF_ERROR(failure_);
  check_is_not_capturing("begin_capture");
  capture_.emplace();
  return {};
}

// Whether the compute stream waits for a point behind the queue's last work.
bool ShadowDevice::is_joined(std::size_t queue) const {
  const auto is_work = [queue](const Captured& call) { return call.queue == queue && call.run; };
  const auto last = std::find_if(capture_->rbegin(), capture_->rend(), is_work).base();
  return last == capture_->begin() || std::any_of(last, capture_->end(), [&](const Captured& record) {
           return record.queue == queue && record.records != nullptr &&
                  std::any_of(last, capture_->end(), [&](const Captured& wait) {
                    return wait.queue == compute_->queue() && wait.awaits == record.records;
                  });
         });
}

Result<std::unique_ptr<Graph>> ShadowDevice::end_capture() {
  SYNCOPATE_RETURN_IF_ERROR(failure_);
  for (const Captured& call : *capture_) {
    if (call.queue != compute_->queue() && !is_joined(call.queue)) {
      capture_.reset();
      return Status::internal("shadow device: a stream of the capture was not joined");
    }
  }
  std::unique_ptr<Graph> graph = std::make_unique<ShadowGraph>(std::move(*capture_));
  capture_.reset();
  return graph;
}

// As one piece: what lies before it in the compute stream is done first, and what follows waits for all of it.
void ShadowDevice::launch(Graph& graph) {
  check_is_not_capturing("a launch");
  if (!failure_.ok()) return;
  const std::vector<Captured>& calls = dynamic_cast<ShadowGraph&>(graph).calls;
  const std::shared_ptr<ShadowPoint> begin = queues_.mark(compute_->queue());
  std::set<std::size_t> others;
  for (const Captured& call : calls) {
    if (call.queue != compute_->queue() && others.insert(call.queue).second) {
      queues_.push(call.queue, {.awaits = begin});
    }
    if (call.records != nullptr) {
      *call.records = queues_.mark(call.queue);
    } else if (call.awaits != nullptr) {
      queues_.push(call.queue, {.awaits = *call.awaits});
    } else {
      push(call.queue, call.run, call.host);
    }
  }
  for (const std::size_t queue : others) queues_.push(compute_->queue(), {.awaits = queues_.mark(queue)});
}

bool ShadowDevice::done(const Event& event) {
  check_is_not_capturing("a question");
  const auto& point = dynamic_cast<const ShadowEvent&>(event).point;
  if (point && !hangs_) queues_.approach(point, queues_.draw_patience());
  return !point || point->reached || !failure_.ok();
}

Duration ShadowDevice::between(const Event& begin, const Event& end) {
  const auto& from = dynamic_cast<const ShadowEvent&>(begin).point;
  const auto& to = dynamic_cast<const ShadowEvent&>(end).point;
  if (!failure_.ok()) return {};
  if (!from || !to || !from->reached || !to->reached) {
    ADD_FAILURE() << "the time between points that are not both reached";
    return {};
  }
  return std::chrono::microseconds(to->time - from->time);
}

Status ShadowDevice::wait(const Event& event, TimePoint /*deadline*/) {
  check_is_not_capturing("a wait");
  const auto& point = dynamic_cast<const ShadowEvent&>(event).point;
  if (point && !hangs_) queues_.reach(point);
  SYNCOPATE_RETURN_IF_ERROR(failure_);
  if (point && !point->reached) return Status::deadline_exceeded("shadow device: work not done in time");
  return {};
}

void ShadowDevice::give(Stream& stream, std::function<void()> work) {
  push(dynamic_cast<ShadowStream&>(stream).queue(), std::move(work), {});
}

void ShadowDevice::finish() {
  if (!hangs_) queues_.finish();
}

void ShadowDevice::fail_after(std::size_t pieces, Status failure) {
  if (pieces == 0) return fail(failure);
  pieces_left_ = pieces;
  failure_to_come_ = std::move(failure);
}

void ShadowDevice::copy(std::size_t queue, std::span<const std::byte> from, std::span<std::byte> to,
                        std::span<const std::byte> host) {
  if (host.empty() || from.size() != to.size()) return;
  if (!is_pinned(host)) ++unpinned_copies_;
  if (failure_.ok() && !capture_) queues_.push(queue, {.run = [to] { poison(to); }, .host = host});
  push(
      queue, [from, to] { std::memmove(to.data(), from.data(), to.size()); }, host);
}

void ShadowDevice::push(std::size_t queue, std::function<void()> run, std::span<const std::byte> host) {
  if (!failure_.ok()) return;
  if (capture_) return capture_->push_back({.queue = queue, .run = std::move(run), .host = host});
  queues_.push(queue, {.run =
                           [this, run = std::move(run)] {
                             run();
                             if (!failure_to_come_.ok() && --pieces_left_ == 0) fail(failure_to_come_);
                           },
                       .host = host});
}

void ShadowDevice::fail(const Status& failure) {
  if (failure_.ok()) failure_ = failure;
  queues_.clear();
}

bool ShadowDevice::is_device(std::span<const std::byte> range) const {
  return range.empty() || std::ranges::any_of(memory_, [&](const AlignedBuffer& buffer) {
           return lies_in(range, std::as_bytes(buffer.span()));
         });
}

bool ShadowDevice::is_pinned(std::span<const std::byte> range) const {
  const auto holds = [&](const AlignedBuffer& buffer) { return lies_in(range, std::as_bytes(buffer.span())); };
  return std::ranges::any_of(pinned_memory_, holds) ||
         std::ranges::any_of(pinned_ranges_, [&](auto pinned) { return lies_in(range, pinned); });
}

}  // namespace syncopate::testing_support
