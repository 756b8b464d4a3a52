#include "experiments/cluster/process/signal_orders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <vector>

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Read {
  std::string text;
  std::vector<int> signals;
};

// What is left of input that comes in these pieces, and what was ordered in it.
Read read_in(std::vector<std::string> pieces) {
  SignalOrders orders;
  Read read;
  for (std::string& piece : pieces) {
    const std::size_t left = orders.take(piece, [&](int signal) { read.signals.push_back(signal); });
    read.text += piece.substr(0, left);
  }
  return read;
}

TEST(SignalOrders, AreTakenOutOfTheText) {
  const Read read = read_in({"secret\n" + signal_order(SIGSTOP) + "clock 7\n" + signal_order(SIGCONT)});
  EXPECT_EQ(read.text, "secret\nclock 7\n");
  EXPECT_THAT(read.signals, ElementsAre(SIGSTOP, SIGCONT));
}

TEST(SignalOrders, AreWholeWhereverTheInputIsCut) {
  const std::string order = signal_order(SIGKILL);
  const Read read = read_in({"a", order.substr(0, 1), order.substr(1) + "b", "c"});
  EXPECT_EQ(read.text, "abc");
  EXPECT_THAT(read.signals, ElementsAre(SIGKILL));
}

TEST(SignalOrders, OfOtherSignalsAreNotObeyed) {
  const Read read = read_in({signal_order(SIGTERM), signal_order(0), std::string(1, '\0') + "x", "y"});
  EXPECT_EQ(read.text, "y");
  EXPECT_THAT(read.signals, IsEmpty());
}

}  // namespace
}  // namespace syncopate::experiments
