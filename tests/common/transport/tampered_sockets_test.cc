// A sealed stream that is recorded, and given to its receiver with something left out, repeated, moved or changed: what
// comes out is the beginning of what was sent, and then an end.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "common/os/file_descriptor.h"
#include "common/transport/socket_cipher.h"
#include "common/transport/socket_link.h"

namespace syncopate {
namespace {

using Records = std::vector<std::string>;

struct SocketPair {
  SocketPair() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    here = FileDescriptor(ends[0]);
    there = FileDescriptor(ends[1]);
  }
  FileDescriptor here, there;
};

class TamperedSockets : public testing::TestWithParam<SocketCipher::Kind> {
 protected:
  void SetUp() override {
    ASSERT_GE(sodium_init(), 0);
    if (GetParam() > SocketCipher::best()) GTEST_SKIP() << "this processor does not have it";
  }

  // The records that these messages and a goodbye make.
  Records recorded(const std::vector<std::string>& messages) {
    SocketPair pair;
    SocketLink link(1, make_sealed_stream(std::move(pair.here), cipher(), cipher()), pool_);
    std::string bytes;
    const auto take_bytes = [&] {
      char part[65536];
      for (ssize_t count; (count = recv(pair.there.get(), part, sizeof(part), 0)) > 0;) {
        bytes.append(part, static_cast<std::size_t>(count));
      }
    };
    for (const std::string& message : messages) {
      link.send("header", std::as_bytes(std::span(message)), nullptr);
      take_bytes();
    }
    link.say_goodbye();
    for (take_bytes(); link.has_more_to_send(); take_bytes()) link.flush();
    Records records;
    while (!bytes.empty()) {
      RecordHead head;
      std::memcpy(&head, bytes.data(), sizeof(head));
      records.push_back(bytes.substr(0, sizeof(head) + head.sealed_bytes));
      bytes.erase(0, records.back().size());
    }
    return records;
  }

  struct Outcome {
    std::vector<std::string> messages;
    bool ended = false;
    bool left_in_order = false;
  };

  // What a receiver makes of these records, after which the connection is closed.
  Outcome received(const Records& records) {
    const std::string bytes = std::accumulate(records.begin(), records.end(), std::string());
    SocketPair pair;
    SocketLink link(1, make_sealed_stream(std::move(pair.here), cipher(), cipher()), pool_);
    std::deque<Message> inbox;
    for (std::size_t said = 0; said < bytes.size() && !link.ended(); link.receive(inbox)) {
      said += static_cast<std::size_t>(
          std::max<ssize_t>(0, send(pair.there.get(), &bytes[said], bytes.size() - said, MSG_NOSIGNAL)));
    }
    pair.there = FileDescriptor();
    while (!link.ended()) link.receive(inbox);
    Outcome outcome{.ended = link.ended(), .left_in_order = link.left_in_order()};
    for (const Message& message : inbox) {
      EXPECT_EQ(message.header(), "header");
      outcome.messages.emplace_back(reinterpret_cast<const char*>(message.payload().data()), message.payload().size());
    }
    return outcome;
  }

  void expect_beginning(const Records& tampered, const std::vector<std::string>& sent) {
    const Outcome outcome = received(tampered);
    EXPECT_LE(outcome.messages.size(), sent.size());
    EXPECT_TRUE(
        std::ranges::equal(outcome.messages, std::span(sent).first(std::min(outcome.messages.size(), sent.size()))));
    EXPECT_TRUE(outcome.ended);
    EXPECT_TRUE(!outcome.left_in_order || outcome.messages == sent) << "a loss must not look like a goodbye";
  }

  // Drops and repeats each record, swaps every two, and ends the stream behind each.
  void expect_no_record_can_be_moved(const std::vector<std::string>& sent) {
    const Records records = recorded(sent);
    const Outcome whole = received(records);
    ASSERT_EQ(whole.messages, sent);
    ASSERT_TRUE(whole.left_in_order);
    for (std::size_t i = 0; i < records.size(); ++i) {
      SCOPED_TRACE(testing::Message() << "record " << i << " of " << records.size());
      const auto at = static_cast<std::ptrdiff_t>(i);
      Records without = records, twice = records;
      without.erase(without.begin() + at);
      expect_beginning(without, sent);
      EXPECT_FALSE(received(without).left_in_order);
      twice.insert(twice.begin() + at, records[i]);
      expect_beginning(twice, sent);
      expect_beginning(Records(records.begin(), records.begin() + at), sent);
      for (std::size_t j = 0; j < i; ++j) {
        Records swapped = records;
        std::swap(swapped[i], swapped[j]);
        expect_beginning(swapped, sent);
      }
    }
  }

 private:
  SocketCipher cipher() const { return SocketCipher(GetParam(), {1, 2, 3}); }

  BufferPool pool_;
};

INSTANTIATE_TEST_SUITE_P(Kind, TamperedSockets,
                         testing::Values(SocketCipher::Kind::kChaCha20Poly1305, SocketCipher::Kind::kAes256Gcm),
                         [](const auto& kind) {
                           return kind.param == SocketCipher::Kind::kAes256Gcm ? "Aes256Gcm" : "ChaCha20Poly1305";
                         });

const std::vector<std::string> kShort{"one", "two", "three", "", "five", "six"};

TEST_P(TamperedSockets, LoseRepeatAndMoveNoShortMessage) { expect_no_record_can_be_moved(kShort); }

TEST_P(TamperedSockets, LoseRepeatAndMoveNoPartOfALongMessage) {
  expect_no_record_can_be_moved({std::string(150'000, 'a'), "b", std::string(70'000, 'c'), std::string(300, 'd')});
}

TEST_P(TamperedSockets, GiveOutNothingThatIsNotAsItWasSent) {
  const Records records = recorded(kShort);
  for (std::size_t i = 0; i < records.size(); ++i) {
    for (std::size_t bit = 0; bit < 8 * records[i].size(); ++bit) {
      SCOPED_TRACE(testing::Message() << "bit " << bit << " of record " << i);
      Records flipped = records;
      flipped[i][bit / 8] = static_cast<char>(flipped[i][bit / 8] ^ (1 << (bit % 8)));
      expect_beginning(flipped, kShort);
    }
  }
}

TEST_P(TamperedSockets, EndAtAnyByteWithoutAGoodbye) {
  Records records = recorded(kShort);
  while (!records.empty()) {
    records.back().pop_back();
    if (records.back().empty()) records.pop_back();
    expect_beginning(records, kShort);
    EXPECT_FALSE(received(records).left_in_order);
  }
}

}  // namespace
}  // namespace syncopate
