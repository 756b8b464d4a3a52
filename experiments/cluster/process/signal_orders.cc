#include "experiments/cluster/process/signal_orders.h"

#include <signal.h>

#include <algorithm>
#include <utility>

namespace syncopate::experiments {
namespace {

constexpr char kBegin = '\0';
constexpr int kObeyed[] = {SIGKILL, SIGSTOP, SIGCONT};

}  // namespace

std::string signal_order(int signal) { return {kBegin, static_cast<char>(signal)}; }

std::size_t SignalOrders::take(std::span<char> bytes, const std::function<void(int signal)>& obey) {
  std::size_t left = 0;
  for (const char byte : bytes) {
    if (std::exchange(is_begun_, false)) {
      if (std::ranges::find(kObeyed, byte) != std::end(kObeyed)) obey(byte);
    } else if (byte == kBegin) {
      is_begun_ = true;
    } else {
      bytes[left++] = byte;
    }
  }
  return left;
}

}  // namespace syncopate::experiments
