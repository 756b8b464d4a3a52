#include "library/text_frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace syncopate::library {
namespace {

constexpr std::string_view kMagic = "syncopa1";
constexpr std::size_t kBegin = kMagic.size() + sizeof(std::uint32_t);

void append_number(std::string& bytes, std::size_t number) {
  const auto value = static_cast<std::uint32_t>(number);
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// `bytes` hold at least one.
std::uint32_t number_at(std::string_view bytes) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

}  // namespace

std::string frame_of(const std::vector<std::string>& texts) {
  std::string body;
  for (const std::string& text : texts) {
    append_number(body, text.size());
    body += text;
  }
  std::string frame(kMagic);
  append_number(frame, body.size());
  return frame + body;
}

Result<std::optional<std::vector<std::string>>> read_frame(std::string_view bytes, std::size_t longest) {
  const std::size_t compared = std::min(bytes.size(), kMagic.size());
  if (bytes.substr(0, compared) != kMagic.substr(0, compared)) return Status::data_loss("it does not begin as a frame");
  if (bytes.size() < kBegin) return std::optional<std::vector<std::string>>();
  const std::size_t size = number_at(bytes.substr(kMagic.size()));
  if (size > longest) return Status::data_loss(fmt::format("it has {} bytes, of at most {}", size, longest));
  std::string_view body = bytes.substr(kBegin);
  if (body.size() > size) return Status::data_loss("more follows than it says");
  if (body.size() < size) return std::optional<std::vector<std::string>>();
  std::vector<std::string> texts;
  while (!body.empty()) {
    if (body.size() < sizeof(std::uint32_t)) return Status::data_loss("a text has no length");
    const std::size_t length = number_at(body);
    body.remove_prefix(sizeof(std::uint32_t));
    if (length > body.size()) return Status::data_loss("a text is longer than its frame");
    texts.emplace_back(body.substr(0, length));
    body.remove_prefix(length);
  }
  return std::optional(std::move(texts));
}

}  // namespace syncopate::library
