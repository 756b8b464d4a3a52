// Fiber: a call that can be left in its middle and gone on with later. Everything of a simulated world runs on one
// thread of the operating system, one fiber at a time, so that nothing there needs a lock or can race.
//
// Two kinds. kFiber: stacks of our own, by Boost.Context; a switch takes some tens of nanoseconds. kThread: a thread of
// the operating system, of which only one runs at a time; a thousand times slower, and what debuggers and sanitizers
// understand.
#pragma once

#include <functional>
#include <memory>

namespace syncopate::simulation {

enum class FiberKind { kFiber, kThread };

// kThread in builds with sanitizers, else kFiber.
FiberKind default_fiber_kind();

class Fiber {
 public:
  // `body` begins at the first resume(). It must not throw.
  static std::unique_ptr<Fiber> make(FiberKind kind, std::function<void()> body);

  // A fiber that has begun must have ended.
  virtual ~Fiber() = default;

  // Goes on with the body, until it suspends or ends. Not called by a fiber.
  virtual void resume() = 0;
  // Called by the body: returns from resume(), and at the next resume() from here. Not within a catch block: the
  // runtime counts exceptions that are being handled by thread.
  virtual void suspend() = 0;
  virtual bool ended() const = 0;
};

}  // namespace syncopate::simulation
