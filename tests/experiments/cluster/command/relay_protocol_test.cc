#include "experiments/cluster/command/relay_protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace syncopate::experiments {
namespace {

using testing::SizeIs;
using std::literals::chrono_literals::operator""ns;

std::string mark() { return std::string(relay_mark()); }

std::string bytes_of(const RelayMessage& message) {
  std::string bytes;
  append_message(bytes, message);
  return bytes;
}

RelayMessage sent_and_read(const RelayMessage& message) {
  RelayReader reader;
  const Result<std::vector<RelayMessage>> messages = reader.read(mark() + bytes_of(message));
  EXPECT_TRUE(messages.ok()) << messages.status().message();
  EXPECT_THAT(*messages, SizeIs(1));
  return messages->front();
}

std::string refusal(const std::string& bytes) {
  RelayReader reader;
  const Result<std::vector<RelayMessage>> messages = reader.read(mark() + bytes);
  EXPECT_EQ(messages.status().code(), Code::kDataLoss);
  return messages.status().message();
}

TEST(RelayProtocol, BringsEachMessageOver) {
  const auto ready = std::get<RelayReady>(sent_and_read(RelayReady{"10.0.0.7", 20123}));
  EXPECT_EQ(ready.address, "10.0.0.7");
  EXPECT_EQ(ready.port, 20123);
  const std::string any("line\n\0\xff", 7);
  EXPECT_EQ(std::get<RelayOutput>(sent_and_read(RelayOutput{any})).text, any);
  EXPECT_EQ(std::get<RelaySteps>(sent_and_read(RelaySteps{any})).bytes, any);
  const auto clock = std::get<RelayClock>(sent_and_read(RelayClock{TimePoint(1ns), TimePoint(2ns), TimePoint(3ns)}));
  EXPECT_EQ(clock.sent, TimePoint(1ns));
  EXPECT_EQ(clock.received, TimePoint(2ns));
  EXPECT_EQ(clock.answered, TimePoint(3ns));
  const auto code = std::get<RelayEnd>(sent_and_read(RelayEnd{.exit_code = 255, .signal = {}, .peak_memory = 5}));
  EXPECT_EQ(code.exit_code, 255) << "which a remote shell alone could not tell from its own failure";
  EXPECT_EQ(code.signal, std::nullopt);
  EXPECT_EQ(code.peak_memory, 5);
  EXPECT_EQ(std::get<RelayEnd>(sent_and_read(RelayEnd{.exit_code = {}, .signal = 9})).signal, 9);
}

TEST(RelayProtocol, ReadsMessagesHoweverTheyArePutIntoPieces) {
  const std::string all = mark() + bytes_of(RelayReady{"10.0.0.7", 1}) + bytes_of(RelayOutput{"hello"}) +
                          bytes_of(RelayEnd{.exit_code = 0, .signal = {}});
  RelayReader reader;
  std::size_t count = 0;
  for (const char byte : all) {
    const Result<std::vector<RelayMessage>> messages = reader.read(std::string_view(&byte, 1));
    ASSERT_TRUE(messages.ok()) << messages.status().message();
    count += messages->size();
  }
  EXPECT_EQ(count, 3u);
}

// What passes whole lines on, as srun does, is at rest between two messages.
TEST(RelayProtocol, EndsEachMessageWithALine) {
  EXPECT_EQ(bytes_of(RelayReady{"10.0.0.7", 1}).back(), '\n');
  EXPECT_EQ(bytes_of(RelayClock{}).back(), '\n');
  std::string cut = bytes_of(RelayReady{"10.0.0.7", 1});
  cut.back() = 'x';
  EXPECT_EQ(refusal(cut), "a message without an end");
}

TEST(RelayProtocol, TakesWhatAShellPrintsBeforeForOutput) {
  RelayReader reader;
  std::string text;
  std::vector<RelayMessage> others;
  for (const std::string& piece : {std::string("Welcome to node1\nsyncopate relay "), "is not here\n" + mark(),
                                   bytes_of(RelayReady{"10.0.0.7", 1})}) {
    const Result<std::vector<RelayMessage>> messages = reader.read(piece);
    ASSERT_TRUE(messages.ok()) << messages.status().message();
    for (const RelayMessage& message : *messages) {
      if (const auto* output = std::get_if<RelayOutput>(&message)) {
        text += output->text;
      } else {
        others.push_back(message);
      }
    }
  }
  EXPECT_EQ(text, "Welcome to node1\nsyncopate relay is not here\n");
  EXPECT_THAT(others, SizeIs(1));
}

// Times count from a host's start.
TEST(RelayProtocol, KnowsHostsThatHaveBeenOnForYears) {
  const TimePoint now{std::chrono::hours(24 * 3000)};
  EXPECT_EQ(std::get<RelayClock>(sent_and_read(RelayClock{now, now, now})).answered, now);
}

TEST(RelayProtocol, RefusesWhatNoRelaySends) {
  const auto with_header = [](std::uint32_t kind, std::uint32_t bytes, const std::string& payload) {
    std::string text(8, '\0');
    std::memcpy(text.data(), &kind, 4);
    std::memcpy(text.data() + 4, &bytes, 4);
    return text + payload + "\n";
  };
  EXPECT_EQ(refusal(with_header(9, 0, "")), "a message of no known kind");
  EXPECT_EQ(refusal(with_header(2, kMostRelayedBytes + 1, "")), "a message is too large") << "before it is waited for";
  for (const std::string address : {"", "10.0.0.7", "node1 20000", "10.0.0.7 0", "10.0.0.7 65536", "10.0.0.7 1 "}) {
    EXPECT_EQ(refusal(with_header(1, static_cast<std::uint32_t>(address.size()), address)), "no address and port");
  }
  EXPECT_EQ(refusal(with_header(4, 8, std::string(8, '\0'))), "times that cannot be");
  EXPECT_EQ(refusal(bytes_of(RelayClock{TimePoint(-1ns), {}, {}})), "times that cannot be");
  EXPECT_EQ(refusal(bytes_of(RelayClock{{}, TimePoint(Duration::max()), {}})), "times that cannot be");
  EXPECT_EQ(refusal(bytes_of(RelayEnd{.exit_code = {}, .signal = {}})), "an end that cannot be");
  EXPECT_EQ(refusal(bytes_of(RelayEnd{.exit_code = 256, .signal = {}})), "an end that cannot be");
  EXPECT_EQ(refusal(bytes_of(RelayEnd{.exit_code = 0, .signal = 9})), "an end that cannot be");
}

TEST(RelayProtocol, BringsEachOrderOverInALine) {
  const auto read = [](const RelayOrder& order) {
    std::string line = to_line(order);
    EXPECT_EQ(line.back(), '\n');
    line.pop_back();
    const Result<RelayOrder> again = parse_order(line);
    EXPECT_TRUE(again.ok()) << line;
    return *again;
  };
  EXPECT_EQ(std::get<RelayQuestion>(read(RelayQuestion{TimePoint(123ns)})).sent, TimePoint(123ns));
  const auto start = std::get<RelayStart>(read(RelayStart{"10.0.0.7", 20123}));
  EXPECT_EQ(start.address, "10.0.0.7");
  EXPECT_EQ(start.port, 20123);
  EXPECT_TRUE(std::holds_alternative<RelayInterrupt>(read(RelayInterrupt())));
  for (const char* line : {"", "clock", "clock -1", "clock 1x", "start 10.0.0.7", "start node1 1", "interrupt now"}) {
    EXPECT_EQ(parse_order(line).status().code(), Code::kDataLoss) << line;
  }
}

}  // namespace
}  // namespace syncopate::experiments
