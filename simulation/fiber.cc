#include "simulation/fiber.h"

#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <semaphore>
#include <thread>
#include <utility>

namespace syncopate::simulation {
namespace {

// Pages that are never touched take no memory. A page below the stack stops what runs over it.
constexpr std::size_t kStackBytes = 1 << 20;

class StackFiber final : public Fiber {
 public:
  explicit StackFiber(std::function<void()> body)
      : body_(std::move(body)),
        inside_(std::allocator_arg, boost::context::protected_fixedsize_stack(kStackBytes),
                [this](boost::context::fiber&& outside) {
                  outside_ = std::move(outside);
                  body_();
                  ended_ = true;
                  return std::move(outside_);
                }) {}

  void resume() override { inside_ = std::move(inside_).resume(); }
  void suspend() override { outside_ = std::move(outside_).resume(); }
  bool ended() const override { return ended_; }

 private:
  std::function<void()> body_;
  bool ended_ = false;
  boost::context::fiber outside_;
  boost::context::fiber inside_;
};

class ThreadFiber final : public Fiber {
 public:
  explicit ThreadFiber(std::function<void()> body) : body_(std::move(body)) {}

  void resume() override {
    if (!thread_.joinable()) {
      thread_ = std::jthread([this] {
        goes_on_.acquire();
        body_();
        ended_ = true;
        is_left_.release();
      });
    }
    goes_on_.release();
    is_left_.acquire();
  }
  void suspend() override {
    is_left_.release();
    goes_on_.acquire();
  }
  bool ended() const override { return ended_; }

 private:
  std::function<void()> body_;
  bool ended_ = false;
  std::binary_semaphore goes_on_{0}, is_left_{0};
  std::jthread thread_;
};

}  // namespace

FiberKind default_fiber_kind() {
#ifdef SYNCOPATE_SANITIZE
  return FiberKind::kThread;
#else
  return FiberKind::kFiber;
#endif
}

std::unique_ptr<Fiber> Fiber::make(FiberKind kind, std::function<void()> body) {
  if (kind == FiberKind::kThread) return std::make_unique<ThreadFiber>(std::move(body));
  return std::make_unique<StackFiber>(std::move(body));
}

}  // namespace syncopate::simulation
