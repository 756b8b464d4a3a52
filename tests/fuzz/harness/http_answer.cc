// What comes to the port of --metrics, from anybody on this machine.
#include "experiments/lab/board/http_answer.h"

#include "tests/fuzz/harness.h"

namespace syncopate::fuzz {
namespace {

const Harness http_answer("http_answer", [](Bytes input) {
  const experiments::HttpPage page{.path = "/metrics", .content_type = "text/plain", .body = [] { return "page\n"; }};
  const std::string_view received = text_of(input);
  const std::optional<std::string> answer = experiments::http_answer(received, page);
  require(answer.has_value() || received.size() < experiments::kLongestRequest, "a long request is answered");
  if (!answer) return;
  require(answer->starts_with("HTTP/1.1 "), "an answer begins as HTTP has it");
  require(answer->find("\r\nConnection: close\r\n") != std::string::npos, "an answer ends its connection");
  if (!answer->starts_with("HTTP/1.1 200")) {
    require(answer->find("page") == std::string::npos, "a refusal shows nothing of the page");
  }
});

}  // namespace
}  // namespace syncopate::fuzz
