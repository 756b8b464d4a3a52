#include "experiments/lab/board/http_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace syncopate::experiments {
namespace {

constexpr std::string_view kLineEnd = "\r\n", kHeadEnd = "\r\n\r\n";

std::string answer(std::string_view status, std::string_view content_type, std::string_view body, bool with_body = true,
                   std::string_view more_fields = "") {
  std::string text = fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n{}Connection: close\r\n\r\n",
      status, content_type, body.size(), more_fields);
  if (with_body) text += body;
  return text;
}

std::string refusal(std::string_view status, std::string_view why, std::string_view more_fields = "") {
  return answer(status, "text/plain; charset=utf-8", fmt::format("{}\n", why), true, more_fields);
}

bool equal_ignoring_case(std::string_view one, std::string_view other) {
  const auto lower = [](unsigned char c) { return std::tolower(c); };
  return std::ranges::equal(one, other, {}, lower, lower);
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

struct RequestLine {
  std::string_view method, path;
};

std::optional<RequestLine> parse_request_line(std::string_view line) {
  const std::size_t first = line.find(' ');
  const std::size_t second = first == std::string_view::npos ? first : line.find(' ', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  const std::string_view target = line.substr(first + 1, second - first - 1), version = line.substr(second + 1);
  if (first == 0 || !target.starts_with('/') || (version != "HTTP/1.1" && version != "HTTP/1.0")) return std::nullopt;
  return RequestLine{.method = line.substr(0, first), .path = target.substr(0, target.find('?'))};
}

// Without its port.
bool is_this_machine(std::string_view host) {
  const bool has_brackets = host.starts_with('[');
  const std::size_t colon = host.find(':', has_brackets ? std::min(host.find(']'), host.size()) : 0);
  const std::string_view name = host.substr(0, colon);
  return equal_ignoring_case(name, "localhost") || name == "127.0.0.1" || name == "[::1]";
}

// The fields of the request's head, each with its line end.
bool is_asked_of_this_machine(std::string_view fields) {
  constexpr std::string_view kHost = "host";
  while (!fields.empty()) {
    const std::size_t end = std::min(fields.find(kLineEnd), fields.size());
    const std::string_view line = fields.substr(0, end);
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos && equal_ignoring_case(line.substr(0, colon), kHost) &&
        !is_this_machine(trimmed(line.substr(colon + 1)))) {
      return false;
    }
    fields.remove_prefix(std::min(end + kLineEnd.size(), fields.size()));
  }
  return true;
}

}  // namespace

std::optional<std::string> http_answer(std::string_view received, const HttpPage& page) {
  const std::size_t end = received.substr(0, kLongestRequest).find(kHeadEnd);
  if (end == std::string_view::npos) {
    if (received.size() < kLongestRequest) return std::nullopt;
    return refusal("431 Request Header Fields Too Large",
                   fmt::format("A request must have fewer than {} bytes.", kLongestRequest));
  }
  const std::string_view head = received.substr(0, end);
  const std::size_t line_end = std::min(head.find(kLineEnd), head.size());
  const std::optional<RequestLine> line = parse_request_line(head.substr(0, line_end));
  if (!line) return refusal("400 Bad Request", "This is no request of HTTP/1.1.");
  if (!is_asked_of_this_machine(head.substr(std::min(line_end + kLineEnd.size(), head.size())))) {
    return refusal("403 Forbidden", "Ask for it by the name localhost, or by 127.0.0.1.");
  }
  if (line->method != "GET" && line->method != "HEAD") {
    return refusal("405 Method Not Allowed", "GET it.", "Allow: GET, HEAD\r\n");
  }
  if (line->path != page.path) return refusal("404 Not Found", fmt::format("There is {} alone.", page.path));
  return answer("200 OK", page.content_type, page.body(), line->method == "GET");
}

}  // namespace syncopate::experiments
