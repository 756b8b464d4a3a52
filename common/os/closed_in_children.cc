#include "common/os/closed_in_children.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <mutex>
#include <vector>

namespace syncopate {
namespace {

// fork() is a process's, and what it calls (pthread_atfork(3)) cannot be told of an object: so this state is, too.
struct Descriptors {
  std::mutex mutex;
  std::vector<int> all;
};

Descriptors& descriptors() {
  static Descriptors& kept = *new Descriptors;  // never destroyed: a process may fork until it ends
  return kept;
}

// The mutex is held from before the fork until after it, on both sides, so that the child finds the list whole. In the
// child only what may be called after fork() in a process with threads is called (signal-safety(7)).
void before() { descriptors().mutex.lock(); }
void in_parent() { descriptors().mutex.unlock(); }
void in_child() {
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int descriptor : descriptors().all) {
    if (nothing >= 0) dup3(nothing, descriptor, O_CLOEXEC);
  }
  if (nothing >= 0) close(nothing);
  descriptors().mutex.unlock();
}

}  // namespace

ClosedInChildren::ClosedInChildren(int descriptor) : descriptor_(descriptor) {
  static const int kAsked = pthread_atfork(before, in_parent, in_child);
  (void)kAsked;
  const std::lock_guard lock(descriptors().mutex);
  descriptors().all.push_back(descriptor);
}

ClosedInChildren::~ClosedInChildren() {
  const std::lock_guard lock(descriptors().mutex);
  std::erase(descriptors().all, descriptor_);
}

}  // namespace syncopate
