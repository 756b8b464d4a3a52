// What an HTTP server of one page says to what it has received (RFC 9112, and of it only what a scrape needs). Pure:
// the bytes are anybody's who can reach the port.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace syncopate::experiments {

// The longest request, in bytes. Prometheus's has about 400.
inline constexpr std::size_t kLongestRequest = 8192;

struct HttpPage {
  std::string path;          // "/metrics"
  std::string content_type;  // of what `body` returns
  std::function<std::string()> body;
};

// Returns the whole answer to the request that `received` begins with, after which the connection is closed; none if
// more must come first. Answers GET and HEAD of the page to who has asked a host of this machine for it: by another
// name a page of the web could have its reader's browser fetch it (DNS rebinding).
std::optional<std::string> http_answer(std::string_view received, const HttpPage& page);

}  // namespace syncopate::experiments
