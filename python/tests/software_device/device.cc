// A device in software, whose memory the host cannot touch and whose copies are late. It is torch's PrivateUse1.
//
// Copies from and to pinned memory are queued on a stream, and run when somebody waits for them. Operators are the
// CPU's, on the other mapping of the device's memory: each first runs what its stream has to wait for, then runs at
// once.

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/op_registration/adaption.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <pthread.h>
#include <pybind11/pybind11.h>
#include <torch/library.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "memory.h"
#include "queue.h"

namespace software_device {

using at::IValue;
using at::Tensor;
using c10::Device;
using c10::DeviceIndex;
using c10::Stream;
using torch::jit::Stack;

constexpr auto kType = c10::DeviceType::PrivateUse1;

std::atomic<bool> forked{false};  // this process has been forked from the one that has the device

// Held by whoever looks at queues or memory, or runs work. Python's lock is let go of while one waits for it, since
// torch may ask for that lock wherever it copies a tensor.
class Locked {
 public:
  Locked() : is_held_(!forked) {
    if (!is_held_ || mutex().try_lock()) return;
    std::optional<pybind11::gil_scoped_release> unlocked;
    if (PyGILState_Check()) unlocked.emplace();
    mutex().lock();
  }
  ~Locked() {
    if (is_held_) mutex().unlock();
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  static std::recursive_mutex& mutex() {
    static auto* mutex = new std::recursive_mutex;
    return *mutex;
  }
  const bool is_held_;
};

DeviceIndex device_count() {
  static const DeviceIndex count = [] {
    const char* text = std::getenv("SOFTWARE_DEVICES");
    return static_cast<DeviceIndex>(text ? std::clamp(std::atoi(text), 1, 16) : 2);
  }();
  return count;
}

Memory& memory() {
  static auto* memory = new Memory(device_count());
  return *memory;
}

using Queues = std::map<c10::StreamId, Queue>;
Queues& queues_of(DeviceIndex device) {
  static auto* queues = new std::vector<Queues>(device_count());
  return queues->at(device);
}

Queue& queue_of(DeviceIndex device, c10::StreamId id) {
  const auto name = [&] { return "stream " + std::to_string(id) + " of software:" + std::to_string(device); };
  Queues& queues = queues_of(device);
  const auto found = queues.find(id);
  return found != queues.end() ? found->second : queues.try_emplace(id, name()).first->second;
}

Queue& queue_of(const Stream& stream) { return queue_of(stream.device_index(), stream.id()); }

// What each thread has chosen.
thread_local DeviceIndex current_device = 0;
thread_local std::map<DeviceIndex, c10::StreamId> current_streams;

Stream current_stream(DeviceIndex device) {
  const auto found = current_streams.find(device);
  return Stream(Stream::UNSAFE, Device(kType, device), found == current_streams.end() ? 0 : found->second);
}

Queue& current_queue(DeviceIndex device) { return queue_of(current_stream(device)); }

void drop_block(void* context) {
  if (forked) return;  // from the process that it belongs to
  const Locked locked;
  const std::unique_ptr<std::shared_ptr<Block>> held(static_cast<std::shared_ptr<Block>*>(context));
  for (Queue* queue : (*held)->queues) {
    if (!queue->has_run(queue->end())) queue->push([block = *held] {}, true);
  }
}

struct DeviceAllocator final : c10::Allocator {
  c10::DataPtr allocate(std::size_t bytes) override {
    TORCH_CHECK(!forked, "The software device cannot be used in a forked process");
    const Device device(kType, current_device);
    if (bytes == 0) return {nullptr, nullptr, &drop_block, device};
    const Locked locked;
    auto* const held = new std::shared_ptr<Block>(
        std::make_shared<Block>(memory(), device.index(), bytes, current_queue(device.index())));
    return {(*held)->data, held, &drop_block, device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    const Locked locked;
    current_queue(static_cast<DeviceIndex>(memory().device_of(to))).run();
    std::memcpy(memory().open(to), memory().open(from), bytes);
  }
};

DeviceAllocator& allocator() {
  static auto* allocator = new DeviceAllocator;
  return *allocator;
}

Block* block_of(const c10::DataPtr& data) {
  auto* const held = data.cast_context<std::shared_ptr<Block>>(&drop_block);
  return held ? held->get() : nullptr;
}

void drop_pinned(void* context) {
  const Locked locked;
  const std::unique_ptr<std::shared_ptr<Pinned>> held(static_cast<std::shared_ptr<Pinned>*>(context));
  Pinned::all().erase((*held)->data);
}

struct PinnedAllocator final : c10::Allocator {
  c10::DataPtr allocate(std::size_t bytes) override {
    const Locked locked;
    auto* const held = new std::shared_ptr<Pinned>(std::make_shared<Pinned>(bytes));
    Pinned::all()[(*held)->data] = *held;
    return {(*held)->data, held, &drop_pinned, c10::DeviceType::CPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { std::memcpy(to, from, bytes); }
};

void resize_storage(const c10::Storage& storage, std::size_t bytes) {
  const c10::DeviceGuard guard(storage.device());
  c10::DataPtr data = allocator().allocate(bytes);
  const std::size_t kept = std::min(bytes, storage.nbytes());
  if (kept > 0) {
    const Locked locked;
    Queue& queue = current_queue(storage.device().index());
    queue.launch();
    block_of(storage.data_ptr())->history.enter(queue, 0, kept, false, "A resize");
    block_of(data)->history.enter(queue, 0, kept, true, "A resize");
    allocator().copy_data(data.get(), storage.data(), kept);
  }
  storage.set_data_ptr_noswap(std::move(data));
  storage.set_nbytes(bytes);
}

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return !forked; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  DeviceIndex deviceCount() const override { return device_count(); }
  DeviceIndex getCurrentDevice() const override { return current_device; }
  void setCurrentDevice(DeviceIndex device) const override { current_device = device; }
  DeviceIndex exchangeDevice(DeviceIndex device) const override { return std::exchange(current_device, device); }
  DeviceIndex maybeExchangeDevice(DeviceIndex device) const override { return exchangeDevice(device); }
  Device getDeviceFromPtr(void* data) const override {
    TORCH_CHECK(memory().has(data), "No memory of the software device");
    return Device(kType, static_cast<DeviceIndex>(memory().device_of(data)));
  }
  bool isPinnedPtr(const void* data) const override {
    const Locked locked;
    return Pinned::find(data) != nullptr;
  }
  c10::Allocator* getPinnedMemoryAllocator() const override {
    static auto* pinned = new PinnedAllocator;
    return pinned;
  }
  // The generator of the CPU, so that a seed gives the numbers that it gives there.
  const at::Generator& getDefaultGenerator(DeviceIndex) const override {
    return at::globalContext().defaultGenerator(c10::DeviceType::CPU);
  }
  at::Generator getNewGenerator(DeviceIndex) const override { return at::detail::createCPUGenerator(); }
  void resizePrivateUse1Bytes(const c10::Storage& storage, std::size_t bytes) const override {
    resize_storage(storage, bytes);
  }
};

// Where a stream was when it was recorded.
struct Event {
  Queue* queue = nullptr;
  std::uint64_t end = 0;
  Clock clock;
  std::shared_ptr<std::chrono::steady_clock::time_point> time;
};

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kType; }
  Device getDevice() const override { return Device(kType, current_device); }
  void setDevice(Device device) const override { uncheckedSetDevice(checked(device)); }
  void uncheckedSetDevice(Device device) const noexcept override {
    if (device.has_index()) current_device = device.index();
  }
  Device exchangeDevice(Device device) const override {
    const Device before = getDevice();
    setDevice(device);
    return before;
  }
  DeviceIndex deviceCount() const noexcept override { return device_count(); }
  c10::DeviceCapability getDeviceCapability(Device) const override { return {}; }

  Stream getStream(Device device) const override { return current_stream(index_of(device)); }
  Stream getDefaultStream(Device device) const override {
    return Stream(Stream::DEFAULT, Device(kType, index_of(device)));
  }
  Stream getNewStream(Device device, int = 0) const override {
    const Locked locked;
    const DeviceIndex index = index_of(device);
    queue_of(index, 0);
    const c10::StreamId id = queues_of(index).rbegin()->first + 1;
    queue_of(index, id);
    return Stream(Stream::UNSAFE, Device(kType, index), id);
  }
  Stream getStreamFromGlobalPool(Device device, bool = false) const override { return getNewStream(device); }
  Stream exchangeStream(Stream stream) const override {
    const Stream before = current_stream(stream.device_index());
    current_streams[stream.device_index()] = stream.id();
    return before;
  }
  bool queryStream(const Stream& stream) const override {
    const Locked locked;
    Queue& queue = queue_of(stream);
    return queue.query(queue.end()) && seen(queue.clock);
  }
  void synchronizeStream(const Stream& stream) const override {
    const Locked locked;
    Queue& queue = queue_of(stream);
    queue.run();
    seen(queue.clock);
  }
  void synchronizeDevice(DeviceIndex device) const override {
    const Locked locked;
    for (auto& [_, queue] : queues_of(device < 0 ? current_device : device)) {
      queue.run();
      seen(queue.clock);
    }
  }

  void record(void** event, const Stream& stream, DeviceIndex, c10::EventFlag flag) const override {
    const Locked locked;
    if (*event == nullptr) *event = new Event;
    Event& recorded = *static_cast<Event*>(*event);
    Queue& queue = queue_of(stream);
    recorded = {&queue, 0, queue.clock};
    if (flag == c10::EventFlag::BACKEND_DEFAULT) {
      recorded.time = std::make_shared<std::chrono::steady_clock::time_point>();
      queue.push([time = recorded.time] { *time = std::chrono::steady_clock::now(); });
    }
    recorded.end = queue.end();
  }
  void block(void* event, const Stream& stream) const override {
    const Locked locked;
    const Event& recorded = *static_cast<Event*>(event);
    Queue& queue = queue_of(stream);
    queue.clock.join(recorded.clock);
    if (recorded.queue == &queue || recorded.queue->has_run(recorded.end)) return;
    queue.push([other = recorded.queue, end = recorded.end] { other->run(end); });
  }
  bool queryEvent(void* event) const override {
    const Locked locked;
    const Event& recorded = *static_cast<Event*>(event);
    return recorded.queue->query(recorded.end) && seen(recorded.clock);
  }
  void synchronizeEvent(void* event) const override {
    const Locked locked;
    const Event& recorded = *static_cast<Event*>(event);
    recorded.queue->run(recorded.end);
    seen(recorded.clock);
  }
  void destroyEvent(void* event, DeviceIndex) const noexcept override {
    const Locked locked;
    delete static_cast<Event*>(event);
  }
  double elapsedTime(void* from, void* to, DeviceIndex) const override {
    const Locked locked;
    return std::chrono::duration<double, std::milli>(*static_cast<Event*>(to)->time - *static_cast<Event*>(from)->time)
        .count();
  }
  void recordDataPtrOnStream(const c10::DataPtr& data, const Stream& stream) const override {
    const Locked locked;
    if (Block* const block = block_of(data)) block->queues.insert(&queue_of(stream));
  }

 private:
  static bool seen(const Clock& clock) {
    host_clock().join(clock);
    return true;
  }
  static DeviceIndex index_of(Device device) { return checked(device).has_index() ? device.index() : current_device; }
  static Device checked(Device device) {
    TORCH_CHECK(device.index() < device_count(), "There is no ", device, ", only ", int{device_count()}, " devices");
    return device;
  }
};

// A tensor as a copy sees it. Who frees it while the copy is queued frees its memory.
struct Region {
  explicit Region(const Tensor& tensor)
      : data(static_cast<char*>(const_cast<void*>(tensor.const_data_ptr()))),
        sizes(tensor.sizes().vec()),
        strides(tensor.strides().vec()),
        type(tensor.scalar_type()),
        is_conjugate(tensor.is_conj()),
        is_negative(tensor.is_neg()) {
    if (tensor.device().type() == kType) data = memory().open(data);
  }
  Tensor tensor() const {
    const Tensor tensor = at::from_blob(data, sizes, strides, at::TensorOptions(type));
    if (is_conjugate) tensor._set_conj(true);
    if (is_negative) tensor._set_neg(true);
    return tensor;
  }

  // Each element, since between them may lie what belongs to others.
  void unset() const {
    if (data == nullptr) return;
    std::vector<std::int64_t> all = sizes, steps = strides;
    const auto width = static_cast<std::int64_t>(c10::elementSize(type));
    for (std::int64_t& step : steps) step *= width;
    all.push_back(width);
    steps.push_back(1);
    at::from_blob(data, all, steps, at::TensorOptions(at::kByte)).fill_(kUnset);
  }

  char* data;
  std::vector<std::int64_t> sizes, strides;
  at::ScalarType type;
  bool is_conjugate, is_negative;
};

void copy(const Region& from, const Region& to) {
  const at::AutoDispatchBelowADInplaceOrView below;
  to.tensor().copy_(from.tensor());
}

// That the last work of a queue reads or writes a tensor.
void enter(const Queue& queue, const Tensor& tensor, bool writes, const std::string& what) {
  const std::size_t size = tensor.itemsize(), offset = tensor.storage_offset();
  const std::size_t end = at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), size, offset);
  if (Block* const block = block_of(tensor.storage().data_ptr())) {
    block->history.enter(queue, offset * size, end, writes, what);
  } else if (const auto pinned = Pinned::find(tensor.storage().data())) {
    const std::size_t start = static_cast<const char*>(tensor.storage().data()) - pinned->data;
    pinned->history.enter(queue, start + offset * size, start + end, writes, what);
  }
}

Tensor copy_from(const Tensor& source, const Tensor& to, bool non_blocking) {
  TORCH_CHECK(!forked, "The software device cannot be used in a forked process");
  if (to.numel() == 0) return to;
  const Tensor from = source.expand_as(to);
  const Region read(from), write(to);
  const bool is_down = from.device().type() == kType, is_up = to.device().type() == kType;
  TORCH_CHECK((is_down || from.is_cpu()) && (is_up || to.is_cpu()), "No copy from ", from.device(), " to ",
              to.device());
  const Locked locked;
  Queue& queue = current_queue((is_down ? from : to).device().index());
  Queue& other = is_up ? current_queue(to.device().index()) : queue;
  const std::shared_ptr<Pinned> pinned = is_down && is_up ? nullptr : Pinned::find(is_down ? write.data : read.data);
  queue.clock.join(other.clock);
  queue.launch();
  enter(queue, from, false, "A copy");
  enter(queue, to, true, "A copy");
  other.clock.join(queue.clock);
  if (non_blocking && pinned && is_down) {
    if (pinned->reads > 0) queue.run();  // of copies before this one, whose source it may be
    write.unset();
    queue.push([read, write, pinned] { copy(read, write); });
  } else if (non_blocking && pinned) {
    ++pinned->reads;
    queue.push([read, write, pinned] {
      --pinned->reads;
      copy(read, write);
    });
  } else {
    queue.run();
    other.run();
    copy(read, write);
    const bool has_waited = is_down ? !is_up : !non_blocking;
    if (has_waited) host_clock().join(queue.clock);
  }
  return to;
}

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

c10::DeviceGuard guard_of(std::optional<Device> device) { return c10::DeviceGuard(device.value_or(Device(kType))); }

Tensor empty(at::IntArrayRef sizes, std::optional<at::ScalarType> type, std::optional<at::Layout> layout,
             std::optional<Device> device, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  TORCH_CHECK(layout.value_or(at::kStrided) == at::kStrided, "The software device has strided tensors only");
  const c10::DeviceGuard guard = guard_of(device);
  return at::detail::empty_generic(sizes, &allocator(), kKeys, c10::dtype_or_default(type), format);
}

Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides, std::optional<at::ScalarType> type,
                     std::optional<at::Layout>, std::optional<Device> device, std::optional<bool>) {
  const c10::DeviceGuard guard = guard_of(device);
  return at::detail::empty_strided_generic(sizes, strides, &allocator(), kKeys, c10::dtype_or_default(type));
}

void set_shape(const Tensor& tensor, at::IntArrayRef sizes, at::IntArrayRef strides, std::int64_t offset) {
  const std::size_t bytes = at::detail::computeStorageNbytes(sizes, strides, tensor.itemsize(), offset);
  if (bytes > tensor.storage().nbytes()) resize_storage(tensor.storage(), bytes);
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, offset);
}

const Tensor& resize(const Tensor& self, at::IntArrayRef sizes, std::optional<at::MemoryFormat> format) {
  if (self.sizes() == sizes && !format) return self;
  const at::MemoryFormat wanted = format.value_or(at::MemoryFormat::Contiguous);
  const c10::DimVector strides =
      wanted == at::MemoryFormat::ChannelsLast     ? c10::DimVector(c10::get_channels_last_strides_2d(sizes))
      : wanted == at::MemoryFormat::ChannelsLast3d ? c10::DimVector(c10::get_channels_last_strides_3d(sizes))
                                                   : c10::contiguous_strides(sizes);
  set_shape(self, sizes, strides, self.storage_offset());
  return self;
}

Tensor& set_storage(Tensor& self, c10::Storage source, std::int64_t offset, at::IntArrayRef sizes,
                    at::IntArrayRef strides) {
  TORCH_CHECK(source.device() == self.device(), "Storage is on ", source.device(), ", the tensor on ", self.device());
  self.unsafeGetTensorImpl()->set_storage_keep_dtype(std::move(source));
  const c10::DimVector dense = c10::contiguous_strides(sizes);
  set_shape(self, sizes, strides.data() == nullptr ? at::IntArrayRef(dense) : strides, offset);
  return self;
}

Tensor& set_nothing(Tensor& self) {
  const c10::DeviceGuard guard(self.device());
  return set_storage(
      self, c10::Storage(c10::Storage::use_byte_size_t(), 0, allocator().allocate(0), &allocator(), true), 0, {0}, {});
}

void record_stream(Tensor& self, Stream stream) { Guard().recordDataPtrOnStream(self.storage().data_ptr(), stream); }

// Runs an operator of the CPU on the memory of its tensors, which it sees as tensors of the CPU.
class Kernel {
 public:
  void run(const c10::OperatorHandle& op, Stack* stack) {
    const c10::FunctionSchema& schema = op.schema();
    name_ = schema.operator_name().name;
    const std::size_t first = stack->size() - schema.arguments().size();
    for (std::size_t i = first; i < stack->size(); ++i) {
      const c10::AliasInfo* const alias = schema.arguments()[i - first].alias_info();
      enter((*stack)[i], alias && alias->isWrite());
    }
    const c10::DeviceGuard guard(device_.value_or(Device(kType, current_device)));
    const Locked locked;
    queue_ = &current_queue(current_device);
    const c10::AliasInfo* const alias = schema.returns().empty() ? nullptr : schema.returns()[0].alias_info();
    const bool is_view = alias && !alias->isWrite();
    if (!is_view) {
      queue_->launch();
      for (const Pair& pair : pairs_) software_device::enter(*queue_, pair.own, pair.writes, name_);
      queue_->run();
    }
    const at::AutoDispatchBelowADInplaceOrView below;
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
    for (const Pair& pair : pairs_) take_over_shape(pair);
    for (std::size_t i = stack->size() - schema.returns().size(); i < stack->size(); ++i) leave((*stack)[i]);
  }

 private:
  struct Pair {
    Tensor own, cpu;
    void* data;
    bool writes;
  };

  void enter(IValue& value, bool writes) {
    if (value.isTensor()) {
      value = entered(value.toTensor(), writes);
    } else if (value.isTensorList()) {
      c10::List<Tensor> entries;
      for (const Tensor& tensor : value.toTensorVector()) entries.push_back(entered(tensor, writes));
      value = entries;
    } else if (value.isOptionalTensorList()) {  // of indices, which may lie on the host
      c10::List<std::optional<Tensor>> entries;
      for (const std::optional<Tensor>& tensor : value.toOptionalTensorVector()) {
        const bool is_own = tensor && tensor->defined() && tensor->device().type() == kType;
        entries.push_back(is_own ? std::optional(entered(*tensor, writes)) : tensor);
      }
      value = entries;
    } else if (value.isDevice() && value.toDevice().type() == kType) {
      if (!device_) device_ = value.toDevice().has_index() ? value.toDevice() : Device(kType, current_device);
      value = Device(c10::DeviceType::CPU);
    }
  }

  Tensor entered(const Tensor& tensor, bool writes) {
    if (!tensor.defined()) return tensor;
    if (tensor.device().type() != kType) {
      const bool is_allowed = tensor.dim() == 0 || name_ == "aten::_pack_padded_sequence";  // whose lengths lie there
      TORCH_CHECK(is_allowed, name_, ": Expected all tensors to be on the same device, but found ", tensor.device(),
                  " and the software device");
      return tensor;
    }
    if (!device_) device_ = tensor.device();
    TORCH_CHECK(*device_ == tensor.device(), name_, ": Expected all tensors to be on the same device, but found ",
                *device_, " and ", tensor.device());
    for (Pair& pair : pairs_) {
      if (!pair.own.is_same(tensor)) continue;
      pair.writes |= writes;
      return pair.cpu;
    }
    const Tensor cpu = at::detail::make_tensor<c10::TensorImpl>(
        storage_of(tensor), c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
    c10::TensorImpl* const impl = cpu.unsafeGetTensorImpl();
    impl->set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
    if (tensor.is_conj()) cpu._set_conj(true);
    if (tensor.is_neg()) cpu._set_neg(true);
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) impl->set_wrapped_number(true);
    pairs_.push_back({tensor, cpu, impl->unsafe_storage().mutable_data(), writes});
    return cpu;
  }

  // One for all tensors that share one.
  c10::Storage storage_of(const Tensor& tensor) const {
    const c10::Storage& storage = tensor.storage();
    for (const Pair& pair : pairs_) {
      if (pair.own.is_alias_of(tensor)) return pair.cpu.storage();
    }
    void* const data = storage.data() ? memory().open(storage.data()) : nullptr;
    return c10::Storage(c10::Storage::use_byte_size_t(), storage.nbytes(), c10::DataPtr(data, c10::DeviceType::CPU),
                        c10::GetDefaultCPUAllocator(), true);
  }

  static void take_over_shape(const Pair& pair) {
    const bool is_moved = pair.cpu.storage().data() != pair.data;
    if (is_moved || pair.cpu.sizes() != pair.own.sizes() || pair.cpu.strides() != pair.own.strides()) {
      set_shape(pair.own, pair.cpu.sizes(), pair.cpu.strides(), pair.cpu.storage_offset());
    }
    if (is_moved && pair.cpu.numel() > 0) copy(Region(pair.cpu), Region(pair.own));
  }

  void leave(IValue& value) const {
    if (value.isScalar()) {  // which the host has waited for
      host_clock().join(queue_->clock);
    } else if (value.isTensor()) {
      value = left(value.toTensor());
    } else if (value.isTensorList()) {
      c10::List<Tensor> entries;
      for (const Tensor& tensor : value.toTensorVector()) entries.push_back(left(tensor));
      value = entries;
    }
  }

  Tensor left(const Tensor& cpu) const {
    if (!cpu.defined()) return cpu;
    for (const Pair& pair : pairs_) {
      if (pair.cpu.is_same(cpu)) return pair.own;
    }
    for (const Pair& pair : pairs_) {
      if (!pair.cpu.is_alias_of(cpu) || cpu.storage().data() != pair.data) continue;
      const Tensor view =
          at::detail::make_tensor<c10::TensorImpl>(c10::Storage(pair.own.storage()), kKeys, cpu.dtype());
      view.unsafeGetTensorImpl()->set_sizes_and_strides(cpu.sizes(), cpu.strides(), cpu.storage_offset());
      return view;
    }
    if (cpu.layout() != at::kStrided) return cpu;
    const Tensor own =
        at::detail::empty_strided_generic(cpu.sizes(), cpu.strides(), &allocator(), kKeys, cpu.scalar_type());
    software_device::enter(*queue_, own, true, name_);
    if (cpu.numel() > 0) copy(Region(cpu), Region(own));
    return own;
  }

  std::string name_;
  Queue* queue_ = nullptr;
  std::vector<Pair> pairs_;
  std::optional<Device> device_;
};

void run_on_cpu(const c10::OperatorHandle& op, Stack* stack) {
  TORCH_CHECK(!forked, "The software device cannot be used in a forked process");
  Kernel().run(op, stack);
}

c10::OperatorHandle operator_of(const char* name) { return c10::Dispatcher::singleton().findSchemaOrThrow(name, ""); }

void convolution(const c10::OperatorHandle&, Stack* stack) {
  static const c10::OperatorHandle op = operator_of("aten::convolution");
  run_on_cpu(op, stack);
}

void convolution_backward(const c10::OperatorHandle&, Stack* stack) {
  static const c10::OperatorHandle op = operator_of("aten::convolution_backward");
  const std::size_t weight = stack->size() - 8;
  const bool is_transposed = (*stack)[weight + 4].toBool();
  const Tensor& kernel = (*stack)[weight].toTensor();
  const std::int64_t channels = is_transposed ? kernel.size(1) * (*stack)[weight + 6].toInt() : kernel.size(0);
  stack->insert(stack->begin() + static_cast<std::ptrdiff_t>(weight) + 1, IValue(std::vector<std::int64_t>{channels}));
  run_on_cpu(op, stack);
}

// Each operator that the CPU has runs as it does there: torch would make some up from others where a device lacks them,
// whose results have other bits.
void take_over_cpu() {
  constexpr auto key = c10::DispatchKey::PrivateUse1;
  static auto* library = new torch::Library(torch::Library::IMPL, "aten", key, __FILE__, __LINE__);
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const auto op = c10::Dispatcher::singleton().findOp(name);
    if (name.getNamespace() != "aten" || name.name == "aten::_fused_sdp_choice") continue;  // which chooses for the CPU
    if (!op || !op->hasKernelForDispatchKey(c10::DispatchKey::CPU) || op->hasKernelForDispatchKey(key)) continue;
    library->impl(c10::toString(name).c_str(), torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>());
  }
}

}  // namespace software_device

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&software_device::run_on_cpu>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  using namespace software_device;
  m.impl("empty.memory_format", TORCH_FN(empty));
  m.impl("empty_strided", TORCH_FN(empty_strided));
  m.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  m.impl("view", TORCH_FN(at::native::view));
  m.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  m.impl("resize_", TORCH_FN(resize));
  m.impl("set_", TORCH_FN(set_nothing));
  m.impl("set_.source_Tensor", TORCH_FN(at::native::set_tensor_));
  m.impl("set_.source_Storage", TORCH_FN(static_cast<Tensor& (*)(Tensor&, c10::Storage)>(at::native::set_)));
  m.impl("set_.source_Storage_storage_offset", TORCH_FN(set_storage));
  m.impl("_copy_from", TORCH_FN(copy_from));
  m.impl("record_stream", TORCH_FN(record_stream));
  m.impl("convolution_overrideable", torch::CppFunction::makeFromBoxedFunction<&convolution>());
  m.impl("convolution_backward_overrideable", torch::CppFunction::makeFromBoxedFunction<&convolution_backward>());
}

// A copy itself sees to what is conjugate or negative.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, Negative, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }

// Under torch.autocast, operators take the types that torch's own lists give them.
TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

// clang-format off
TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
#define LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define FULL(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
  AT_FORALL_LOWER_PRECISION_FP(LOWER)
  AT_FORALL_FP32(FULL)
}  // clang-format on

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  using namespace software_device;
  c10::SetAllocator(kType, &allocator());
  c10::impl::registerDeviceGuard(kType, new Guard);
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  take_over_cpu();
  pthread_atfork(nullptr, nullptr, [] { forked = true; });
  m.def("device_count", [] { return int{device_count()}; });
  m.def("check_order", [](bool is_checked) { return std::exchange(is_order_checked(), is_checked); });
  m.def("is_forked", [] { return forked.load(); });
  m.def("is_pending", [](DeviceIndex device, c10::StreamId id) {
    const Locked locked;
    const Queue& queue = queue_of(device, id);
    return !queue.has_run(queue.end());
  });
}
