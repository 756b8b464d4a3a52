// WorldThreads: threads that are actors of a world, so that their waits pass in virtual time.
#pragma once

#include <memory>
#include <string>

#include "common/threads.h"
#include "simulation/world.h"

namespace syncopate::simulation {

class WorldThreads final : public Threads {
 public:
  // The world must outlive it, and all monitors and threads that it has made.
  explicit WorldThreads(World& world) : world_(world) {}

  const Clock& clock() const override { return world_.clock(); }
  // Used by actors alone. A monitor need not be locked against others, who do not run at the same time; but an actor
  // that would wait for one that is locked waits, as a thread would.
  std::unique_ptr<Monitor> make_monitor() override;
  // By an actor, or before the world runs. The handle's destructor, too, is called by an actor, or once the thread has
  // ended.
  std::unique_ptr<Handle> start(const std::string& name, std::function<void()> body, Priority) override;

 private:
  World& world_;
};

}  // namespace syncopate::simulation
