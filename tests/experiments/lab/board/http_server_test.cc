#include "experiments/lab/board/http_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <string>
#include <vector>

#include "tests/support/slowness.h"

namespace syncopate::experiments {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;
using std::literals::chrono_literals::operator""ms;
using std::literals::chrono_literals::operator""s;

constexpr const char* kScrape = "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";

// A client of the test's, which waits ten seconds at most.
class Client {
 public:
  explicit Client(int port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval patience{.tv_sec = 10 * testing_support::kSlowness, .tv_usec = 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  }

  bool connected() const { return connected_; }
  // Returns whether all of it could be sent.
  bool send(const std::string& bytes) {
    std::size_t sent = 0;
    while (sent < bytes.size()) {
      const ssize_t count = ::send(socket_.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) return false;
      sent += static_cast<std::size_t>(count);
    }
    return true;
  }
  // Returns what comes until the other side closes, or "late" if it does not.
  std::string read_to_end() {
    std::string text;
    char bytes[4096];
    while (true) {
      const ssize_t count = ::recv(socket_.get(), bytes, sizeof(bytes), 0);
      if (count == 0 || (count < 0 && errno == ECONNRESET)) return text;
      if (count < 0) return "late";
      text.append(bytes, static_cast<std::size_t>(count));
    }
  }

 private:
  FileDescriptor socket_;
  bool connected_ = false;
};

class HttpServerTest : public testing::Test {
 protected:
  void serve(Duration deadline = 60s) {
    Result<std::unique_ptr<HttpServer>> server =
        HttpServer::start(0,
                          {.path = "/metrics",
                           .content_type = "text/plain",
                           .body = [this] { return body_ + std::to_string(++served_); }},
                          deadline);
    ASSERT_TRUE(server.ok()) << server.status().message();
    server_ = std::move(*server);
  }
  std::string scrape() {
    Client client(server_->port());
    EXPECT_TRUE(client.send(kScrape));
    return client.read_to_end();
  }

  std::string body_ = "scrape ";
  std::atomic<int> served_ = 0;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswersScrapeAfterScrape) {
  serve();
  for (int i = 1; i <= 5; ++i) EXPECT_THAT(scrape(), EndsWith("\r\n\r\nscrape " + std::to_string(i)));
}

TEST_F(HttpServerTest, SendsAPageThatIsLongerThanASocketHolds) {
  body_ = std::string(std::size_t{16} << 20, 'x');
  serve();
  EXPECT_EQ(scrape().size(), body_.size() + 1 + scrape().find("\r\n\r\n") + 4);
}

TEST_F(HttpServerTest, AnswersWhileOthersSayNothingOrHalfASentence) {
  serve();
  std::vector<Client> silent;
  for (int i = 0; i < 10; ++i) silent.emplace_back(server_->port());
  for (Client& client : silent) EXPECT_TRUE(client.send("GET /met"));
  EXPECT_THAT(scrape(), EndsWith("scrape 1"));
  EXPECT_TRUE(silent.front().send("rics HTTP/1.1\r\n\r\n"));
  EXPECT_THAT(silent.front().read_to_end(), EndsWith("scrape 2"));
}

TEST_F(HttpServerTest, MakesRoomForTheNewestAmongTooMany) {
  serve();
  std::vector<Client> silent;
  for (std::size_t i = 0; i < 2 * HttpServer::kMostConnections; ++i) silent.emplace_back(server_->port());
  EXPECT_THAT(scrape(), EndsWith("scrape 1"));
  EXPECT_EQ(silent.front().read_to_end(), "") << "the oldest was closed";
}

TEST_F(HttpServerTest, ClosesWhoDoesNotComeToAnEndInTime) {
  serve(200ms);
  Client silent(server_->port()), half(server_->port());
  (void)half.send("GET /metrics HTTP/1.1\r\nX-Endless: ");  // it may be closed before
  EXPECT_EQ(half.read_to_end(), "");
  EXPECT_EQ(silent.read_to_end(), "");
  EXPECT_EQ(served_, 0);
}

TEST_F(HttpServerTest, ClosesWhoSendsAByteNowAndThenForEver) {
  serve(200ms);
  Client drip(server_->port());
  const SteadyClock clock;
  const TimePoint limit = clock.now() + 20s * testing_support::kSlowness;
  int sent = 0;
  while (drip.send("a") && clock.now() < limit) ++sent;
  EXPECT_GT(sent, 0);
  EXPECT_LT(clock.now(), limit);
}

TEST_F(HttpServerTest, RefusesAnEndlessHeadAndGarbage) {
  serve();
  Client endless(server_->port());
  EXPECT_TRUE(endless.send("GET /metrics HTTP/1.1\r\nX: " + std::string(kLongestRequest, 'a')));
  EXPECT_THAT(endless.read_to_end(), StartsWith("HTTP/1.1 431"));
  Client garbage(server_->port());
  EXPECT_TRUE(garbage.send(std::string("\0\xFF\x16\x03\r\n\r\n", 8)));
  EXPECT_THAT(garbage.read_to_end(), StartsWith("HTTP/1.1 400"));
  EXPECT_EQ(served_, 0);
  EXPECT_THAT(scrape(), EndsWith("scrape 1"));
}

TEST_F(HttpServerTest, OutlivesWhoLeavesBeforeTheAnswer) {
  body_ = std::string(std::size_t{1} << 20, 'x');
  serve();
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(Client(server_->port()).send(kScrape));
  EXPECT_THAT(scrape(), StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, EndsWhileConnectionsAreOpen) {
  serve();
  Client silent(server_->port());
  EXPECT_THAT(scrape(), EndsWith("scrape 1"));
  const int port = server_->port();
  server_.reset();
  EXPECT_EQ(silent.read_to_end(), "");
  EXPECT_FALSE(Client(port).connected());
}

TEST_F(HttpServerTest, SaysWhyAPortCannotBeHad) {
  serve();
  const Status taken = HttpServer::start(server_->port(), {}).status();
  EXPECT_EQ(taken.code(), Code::kInvalidArgument);
  EXPECT_THAT(taken.message(), HasSubstr("Address already in use; 0 takes a port that is free"));
}

}  // namespace
}  // namespace syncopate::experiments
