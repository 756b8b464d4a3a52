#include "tests/software_gpu/grid.h"

#include <immintrin.h>
#include <sys/mman.h>

#include <algorithm>
#include <boost/context/fiber.hpp>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "tests/software_gpu/accesses.h"
#include "tests/software_gpu/machine.h"
#include "tests/software_gpu/settings.h"
#include "tests/software_gpu/streams.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace software_gpu {
namespace {

namespace context = boost::context;

constexpr unsigned kWarp = 32;
constexpr std::size_t kStack = std::size_t{64} << 10;
constexpr unsigned kFlushDenormals = 0x8040;  // of the processor's MXCSR: FTZ and DAZ

// Stacks that are used again and again.
class Stacks {
 public:
  context::stack_context allocate() {
    void* memory = nullptr;
    if (free().empty()) {
      memory = mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    } else {
      memory = free().back();
      free().pop_back();
    }
    context::stack_context stack;
    stack.size = kStack;
    stack.sp = static_cast<char*>(memory) + kStack;
    return stack;
  }
  void deallocate(context::stack_context& stack) { free().push_back(static_cast<char*>(stack.sp) - kStack); }

 private:
  static std::vector<void*>& free() {
    static auto* const stacks = new std::vector<void*>;
    return *stacks;
  }
};

enum class State { kNew, kAtBarrier, kInWarp, kDone };

struct Thread {
  uint3 index{};
  State state = State::kNew;
  context::fiber rest;  // of one that waits
  int line = 0;         // where it waits
  unsigned value = 0;   // that it exchanges
  int distance = 0;
};

std::vector<std::pair<char*, char*>>& shared_parts() {
  static auto* const parts = new std::vector<std::pair<char*, char*>>;
  return *parts;
}

// The block that runs. There is one at a time: work of streams has the lock.
class Block {
 public:
  explicit Block(const Launch& launch)
      : launch_(launch),
        threads_(launch.block.x * launch.block.y * launch.block.z),
        meetings_((threads_.size() + kWarp - 1) / kWarp) {
    for (unsigned i = 0; i < threads_.size(); ++i) {
      const dim3& block = launch.block;
      threads_[i].index = {i % block.x, i / block.x % block.y, i / (block.x * block.y)};
    }
    order_.resize(threads_.size());
    std::iota(order_.begin(), order_.end(), 0u);
    arrange(order_);
  }

  void run() {
    for (const auto& [begin, end] : shared_parts()) std::fill(begin, end, static_cast<char>(0xff));
    for (Thread& thread : threads_) thread.state = State::kNew;
    next_ = 0;
    barriers_ = 0;
    std::ranges::fill(meetings_, 0u);
    current = this;
    while (next_ < order_.size())
      resume(context::fiber(std::allocator_arg, Stacks(),
                            [this](context::fiber&& caller) { return begin_threads(std::move(caller)); }));
    while (std::ranges::any_of(threads_, [](const Thread& thread) { return thread.state != State::kDone; })) {
      if (!release_warps() && !release_block()) {
        find_fault(launch_.name + ": its threads wait for one another for ever");
        std::abort();  // what is left of their stacks cannot be run to an end
      }
    }
    current = nullptr;
  }

  // Called by the thread that runs: others go on until it may.
  unsigned wait(State state, int line, unsigned value, int distance) {
    Thread& self = *running_;
    self.state = state;
    self.line = line;
    self.value = value;
    self.distance = distance;
    scheduler_ = std::move(scheduler_).resume();
    enter(self);
    return self.value;
  }

  static Block* current;

 private:
  // One fiber runs threads until one has to wait; another goes on with the next.
  context::fiber begin_threads(context::fiber&& caller) {
    scheduler_ = std::move(caller);
    while (next_ < order_.size()) {
      enter(threads_[order_[next_++]]);
      launch_.body();
      running_->state = State::kDone;
    }
    return std::move(scheduler_);
  }

  void enter(Thread& thread) {
    running_ = &thread;
    threadIdx = thread.index;
    const auto number = static_cast<unsigned>(&thread - threads_.data());
    const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    run_thread({.block = block, .thread = number, .barriers = barriers_, .meetings = meetings_[number / kWarp]});
  }

  void resume(context::fiber fiber) {
    context::fiber rest = std::move(fiber).resume();
    if (rest) running_->rest = std::move(rest);
  }

  // Lets warps go on of which no lane runs and some wait for each other.
  bool release_warps() {
    bool has_released = false;
    for (std::size_t first = 0; first < threads_.size(); first += kWarp) {
      const std::span<Thread> warp =
          std::span(threads_).subspan(first, std::min<std::size_t>(kWarp, threads_.size() - first));
      const auto is = [](State state) { return [state](const Thread& thread) { return thread.state == state; }; };
      if (std::ranges::none_of(warp, is(State::kInWarp)) || std::ranges::any_of(warp, is(State::kAtBarrier))) continue;
      if (warp.size() < kWarp || std::ranges::any_of(warp, is(State::kDone))) {
        find_fault(launch_.name +
                   ": a warp's operation with all lanes in its mask, some of which have ended or do not exist");
      }
      exchange(warp);
      ++meetings_[first / kWarp];
      has_released = true;
      for (const unsigned i : order_) {
        const bool is_of_warp = i >= first && i < first + warp.size();
        if (is_of_warp && threads_[i].state == State::kInWarp) resume(std::move(threads_[i].rest));
      }
    }
    return has_released;
  }

  void exchange(std::span<Thread> warp) {
    std::vector<unsigned> values(kWarp);
    const Thread& first = *std::ranges::find(warp, State::kInWarp, &Thread::state);
    for (std::size_t lane = 0; lane < warp.size(); ++lane) {
      values[lane] = warp[lane].value;
      if (warp[lane].state == State::kInWarp && warp[lane].line != first.line) {
        find_fault(launch_.name + ": lanes of a warp meet at lines " + std::to_string(first.line) + " and " +
                   std::to_string(warp[lane].line));
      }
    }
    for (std::size_t lane = 0; lane < warp.size(); ++lane) {
      warp[lane].value = values[(lane ^ static_cast<unsigned>(warp[lane].distance)) % kWarp];
    }
  }

  // Lets all go on if all that have not ended wait for the block.
  bool release_block() {
    const Thread* first = nullptr;
    bool has_ended = false;
    for (const Thread& thread : threads_) {
      if (thread.state == State::kDone) {
        has_ended = true;
        continue;
      }
      if (thread.state != State::kAtBarrier) return false;
      if (first == nullptr) first = &thread;
      if (thread.line != first->line) {
        find_fault(launch_.name + ": threads of a block meet at lines " + std::to_string(first->line) + " and " +
                   std::to_string(thread.line));
      }
    }
    if (has_ended) {
      find_fault(launch_.name + ": __syncthreads at line " + std::to_string(first->line) +
                 " after threads of the block have ended");
    }
    // Those that wait again must not go on twice.
    std::vector<unsigned> waiting;
    for (const unsigned i : order_) {
      if (threads_[i].state == State::kAtBarrier) waiting.push_back(i);
    }
    ++barriers_;
    for (const unsigned i : waiting) resume(std::move(threads_[i].rest));
    return true;
  }

  const Launch& launch_;
  std::vector<Thread> threads_;
  std::vector<unsigned> order_;
  std::size_t next_ = 0;
  unsigned barriers_ = 0;           // behind the block
  std::vector<unsigned> meetings_;  // behind each warp
  Thread* running_ = nullptr;
  context::fiber scheduler_;
};

Block* Block::current = nullptr;

void run(const Launch& launch) {
  gridDim = launch.grid;
  blockDim = launch.block;
  const std::uint64_t blocks = std::uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
  const std::uint64_t first = settings().order == Order::kDrawn ? draw(blocks) : 0;
  const unsigned modes = _mm_getcsr();
  _mm_setcsr((modes & ~kFlushDenormals) | (launch.flushes_denormals ? kFlushDenormals : 0));
  Block block(launch);
  for (std::uint64_t i = 0; i < blocks; ++i) {
    const std::uint64_t place = settings().order == Order::kLast ? blocks - 1 - i : (i + first) % blocks;
    blockIdx = {static_cast<unsigned>(place % launch.grid.x),
                static_cast<unsigned>(place / launch.grid.x % launch.grid.y),
                static_cast<unsigned>(place / (std::uint64_t{launch.grid.x} * launch.grid.y))};
    block.run();
  }
  _mm_setcsr(modes);
}

}  // namespace

cudaError_t launch(Launch launch, cudaStream_t stream) {
  const std::lock_guard hold(machine_lock());
  if (sticky_error() != cudaSuccess) return remember(sticky_error());
  count("launches");
  const dim3 &grid = launch.grid, &block = launch.block;
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  const bool is_grid =
      grid.x > 0 && grid.y > 0 && grid.z > 0 && grid.x <= 2147483647u && grid.y <= 65535 && grid.z <= 65535;
  if (threads == 0 || threads > 1024 || block.z > 64 || !is_grid) {
    find_fault(launch.name + ": a grid or block that no GPU takes");
    return remember(cudaErrorInvalidConfiguration);
  }
  if (const cudaError_t wrong = check_stream(stream)) return wrong;
  const std::string name = launch.name;
  give(stream, name, [launch = std::move(launch)] { run(launch); });
  return cudaSuccess;
}

void register_shared(char* begin, char* end) {
  const bool is_known = std::ranges::find(shared_parts(), std::pair(begin, end)) != shared_parts().end();
  if (begin == nullptr || begin == end || is_known) return;  // each source with kernels says it
  shared_parts().emplace_back(begin, end);
  watch_shared(begin, end);
}

void meet_block(int line) { Block::current->wait(State::kAtBarrier, line, 0, 0); }

unsigned exchange_in_warp(unsigned value, int distance, int line) {
  return Block::current->wait(State::kInWarp, line, value, distance);
}

}  // namespace software_gpu
