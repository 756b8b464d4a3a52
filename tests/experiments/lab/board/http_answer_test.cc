#include "experiments/lab/board/http_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace syncopate::experiments {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

// The answer, empty if more must come.
std::string answer_to(const std::string& request) {
  return http_answer(request, {.path = "/metrics", .content_type = "text/plain", .body = [] { return "up 1\n"; }})
      .value_or("");
}

TEST(HttpAnswer, IsThePageToAScrape) {
  EXPECT_EQ(answer_to("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:9100\r\nUser-Agent: Prometheus/2.42.0\r\n\r\n"),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nCache-Control: no-store\r\n"
            "Connection: close\r\n\r\nup 1\n");
  EXPECT_THAT(answer_to("GET /metrics?a=b HTTP/1.0\r\n\r\n"), EndsWith("\r\n\r\nup 1\n"));
}

TEST(HttpAnswer, HasNoBodyForAHead) {
  EXPECT_THAT(answer_to("HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"),
              testing::AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("Content-Length: 5\r\n"), EndsWith("\r\n\r\n")));
}

TEST(HttpAnswer, WaitsForTheWholeHeadOfARequestByteByByte) {
  const std::string request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
  for (std::size_t size = 0; size < request.size(); ++size) EXPECT_EQ(answer_to(request.substr(0, size)), "") << size;
  EXPECT_THAT(answer_to(request), StartsWith("HTTP/1.1 200"));
}

TEST(HttpAnswer, RefusesWhatIsNotAsked) {
  EXPECT_THAT(answer_to("GET / HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(answer_to("GET /metrics/../x HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(answer_to("POST /metrics HTTP/1.1\r\n\r\n"),
              testing::AllOf(StartsWith("HTTP/1.1 405"), HasSubstr("Allow: GET, HEAD\r\n")));
}

TEST(HttpAnswer, RefusesWhatIsNoRequest) {
  for (const char* request : {"\r\n\r\n", "GET\r\n\r\n", "GET /metrics\r\n\r\n", "GET /metrics HTTP/2\r\n\r\n",
                              " /metrics HTTP/1.1\r\n\r\n", "GET metrics HTTP/1.1\r\n\r\n", "\x16\x03\x01\r\n\r\n"}) {
    EXPECT_THAT(answer_to(request), StartsWith("HTTP/1.1 400")) << request;
  }
}

TEST(HttpAnswer, RefusesALongRequestWithoutReadingItToItsEnd) {
  const std::string endless = "GET /metrics HTTP/1.1\r\n" + std::string(2 * kLongestRequest, 'a');
  EXPECT_EQ(answer_to(endless.substr(0, kLongestRequest - 1)), "");
  EXPECT_THAT(answer_to(endless.substr(0, kLongestRequest)), StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(answer_to(endless + "\r\n\r\n"), StartsWith("HTTP/1.1 431"));
}

TEST(HttpAnswer, IsForWhoAsksThisMachineByItsOwnName) {
  const auto asked = [](const std::string& host) {
    return answer_to("GET /metrics HTTP/1.1\r\nAccept: */*\r\nhOsT:" + host + "\r\n\r\n");
  };
  for (const char* host : {" localhost", " LOCALHOST:9100", "127.0.0.1", "\t127.0.0.1:80 ", " [::1]:9100"}) {
    EXPECT_THAT(asked(host), StartsWith("HTTP/1.1 200")) << host;
  }
  for (const char* host : {" evil.example", " localhost.evil.example:9100", " 127.0.0.1.evil.example", "", " [::2]"}) {
    EXPECT_THAT(asked(host), StartsWith("HTTP/1.1 403")) << host;
  }
}

}  // namespace
}  // namespace syncopate::experiments
