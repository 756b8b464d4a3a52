// Queues of work, and who must have waited for whom.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace software_device {

// How far one who holds it has seen each queue, by the queue's number.
class Clock {
 public:
  std::uint64_t of(std::size_t queue) const { return queue < seen_.size() ? seen_[queue] : 0; }
  void set(std::size_t queue, std::uint64_t seen) {
    if (queue >= seen_.size()) seen_.resize(queue + 1);
    seen_[queue] = seen;
  }
  void join(const Clock& other) {
    for (std::size_t queue = 0; queue < other.seen_.size(); ++queue)
      set(queue, std::max(of(queue), other.seen_[queue]));
  }

 private:
  std::vector<std::uint64_t> seen_;
};

// What the host has waited for. One for all threads, since what they tell each other is not seen here.
inline Clock& host_clock() {
  static auto* clock = new Clock;
  return *clock;
}

// Whether work that does not wait for what it needs is an error. It sees NaN or old values where it is none.
inline bool& is_order_checked() {
  static bool is_checked = [] {
    const char* text = std::getenv("SOFTWARE_ORDER");
    return text == nullptr || std::string(text) != "0";
  }();
  return is_checked;
}

// The work of a stream, in order: it runs when it is asked for. A queue lives as long as the process.
class Queue {
 public:
  explicit Queue(std::string name) : name(std::move(name)), number_(count()++) {}

  // Work that holds memory and does nothing else is `silent`: nobody waits for it.
  void push(std::function<void()> work, bool is_silent = false) {
    tasks_.push_back({std::move(work), is_silent});
    ++pushed_;
  }

  // All that has been pushed so far.
  std::uint64_t end() const { return pushed_; }
  bool has_run(std::uint64_t end) const { return run_ >= end; }
  void run() { run(pushed_); }
  void run(std::uint64_t end) {
    while (run_ < end || (!tasks_.empty() && tasks_.front().is_silent)) {
      const Task task = std::move(tasks_.front());
      tasks_.pop_front();
      ++run_;
      task.work();
    }
  }

  // Whether it has come that far. Each second question makes it so.
  bool query(std::uint64_t end) {
    if (!has_run(end) && ++asked_ % 2 == 0) run(end);
    return has_run(end);
  }

  // Work comes after all that the queue and the host have seen, whether it is pushed or runs at once.
  void launch() {
    clock.join(host_clock());
    clock.set(number_, now() + 1);
  }
  std::uint64_t now() const { return clock.of(number_); }
  bool has_seen(const Queue& other, std::uint64_t when) const { return clock.of(other.number_) >= when; }

  const std::string name;
  Clock clock;

 private:
  struct Task {
    std::function<void()> work;
    bool is_silent;
  };

  static std::size_t& count() {
    static std::size_t count = 0;
    return count;
  }

  const std::size_t number_;
  std::deque<Task> tasks_;
  std::uint64_t pushed_ = 0, run_ = 0, asked_ = 0;
};

// Which work has read and written an allocation.
class History {
 public:
  // The bytes [from, to) by the last work that the queue launched, which must have waited for others that write them.
  void enter(const Queue& queue, std::size_t from, std::size_t to, bool writes, const std::string& what) {
    for (const Access& access : accesses_) {
      const bool is_apart = access.to <= from || to <= access.from || !(writes || access.writes);
      if (is_apart || !is_order_checked() || queue.has_seen(*access.queue, access.when)) continue;
      throw std::runtime_error(what + " on " + queue.name + (writes ? " writes" : " reads") + " what " +
                               access.queue->name + (access.writes ? " writes" : " reads") +
                               ", and has not waited for it");
    }
    std::erase_if(accesses_, [&](const Access& access) {
      return from <= access.from && access.to <= to && (writes || (!access.writes && access.queue == &queue));
    });
    accesses_.push_back({&queue, queue.now(), from, to, writes});
  }

 private:
  struct Access {
    const Queue* queue;
    std::uint64_t when;
    std::size_t from, to;
    bool writes;
  };
  std::vector<Access> accesses_;
};

}  // namespace software_device
