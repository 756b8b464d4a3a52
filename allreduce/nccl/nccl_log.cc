#include "allreduce/nccl/nccl_log.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

namespace syncopate::allreduce {
namespace {

constexpr std::string_view kInfo = " NCCL INFO ";

// The part of `text` behind the first `mark`, and before it in `*before`; empty where there is none.
std::string_view behind(std::string_view text, std::string_view mark, std::string_view* before = nullptr) {
  const std::size_t at = text.find(mark);
  if (at == std::string_view::npos) return {};
  if (before != nullptr) *before = text.substr(0, at);
  return text.substr(at + mark.size());
}

std::string_view first_word(std::string_view text) { return text.substr(0, text.find(' ')); }

void add_once(std::vector<std::string>& list, std::string name) {
  if (name.empty() || std::find(list.begin(), list.end(), name) != list.end()) return;
  list.push_back(std::move(name));
}

// From how NCCL's log names it to how NCCL_ALGO and NCCL_PROTO do (its collectives.cc and init.cc).
std::string configured_name(std::string_view logged) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"RING", "Ring"},
      {"TREE", "Tree"},
      {"COLLNET_DIRECT", "CollNetDirect"},
      {"COLLNET_CHAIN", "CollNetChain"},
      {"NVLS_TREE", "NVLSTree"},
      {"SIMPLE", "Simple"},
  };
  for (const auto& [in_log, configured] : kNames) {
    if (logged == in_log) return std::string(configured);
  }
  return std::string(logged);  // the others are the same
}

// "NET/Socket/0" without the number of the network card: that of one channel is not that of all.
std::string wire_name(std::string_view via) {
  std::string_view rest = first_word(via);
  std::vector<std::string_view> parts;
  while (!rest.empty()) {
    const std::size_t end = rest.find('/');
    parts.push_back(rest.substr(0, end));
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  std::string name =
      fmt::format("{}", fmt::join(parts.begin(), parts.begin() + std::min<long>(2, std::ssize(parts)), "/"));
  if (via.find("/GDRDMA") != std::string_view::npos) name += "/GDRDMA";
  return name;
}

void take_line(std::string_view message, NcclChoice& choice) {
  if (const auto value = behind(message, "NCCL_ALGO set by environment to "); !value.empty()) {
    choice.allowed_algorithms = std::string(value);
    return;
  }
  if (message.starts_with("AllReduce: ")) {
    const std::string_view algorithm = behind(message, " Bytes -> Algo ");
    const std::string_view protocol = behind(algorithm, " proto ");
    if (protocol.empty()) return;
    add_once(choice.algorithms, configured_name(first_word(algorithm)));
    add_once(choice.protocols, configured_name(first_word(protocol)));
    return;
  }
  if (message.starts_with("Channel ")) {
    if (const auto via = behind(message, " via "); !via.empty()) add_once(choice.wires, wire_name(via));
    return;
  }
  std::string_view count;
  if (!behind(message, " coll channels, ", &count).empty()) {
    std::from_chars(count.data(), count.data() + count.size(), choice.channels);
  }
}

}  // namespace

NcclChoice parse_nccl_log(std::string_view log) {
  NcclChoice choice;
  for (std::size_t end = log.find('\n'); end != std::string_view::npos; end = log.find('\n')) {
    const std::string_view message = behind(log.substr(0, end), kInfo);
    take_line(message, choice);
    log.remove_prefix(end + 1);
  }
  return choice;
}

std::string describe(const NcclChoice& choice) {
  std::vector<std::string> parts;
  if (!choice.algorithms.empty()) {
    parts.push_back(fmt::format("{}", fmt::join(choice.algorithms, "/")));
  } else if (!choice.allowed_algorithms.empty()) {
    parts.push_back(choice.allowed_algorithms);
  }
  if (!choice.protocols.empty()) parts.push_back(fmt::format("{}", fmt::join(choice.protocols, "/")));
  if (choice.channels > 0)
    parts.push_back(fmt::format("{} channel{}", choice.channels, choice.channels == 1 ? "" : "s"));
  if (!choice.wires.empty()) parts.push_back(fmt::format("{}", fmt::join(choice.wires, " and ")));
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace syncopate::allreduce
