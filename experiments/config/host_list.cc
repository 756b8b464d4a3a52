#include "experiments/config/host_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cctype>
#include <charconv>
#include <optional>
#include <sstream>
#include <utility>

#include "common/os/socket_address.h"
#include "common/text/number.h"

namespace syncopate::experiments {
namespace {

constexpr std::size_t kMostHosts = kMostWorkers;

// The name becomes a word of the remote shell's command line, where a leading dash would be an option.
bool is_name(std::string_view name) {
  const auto allowed = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_' || c == '@';
  };
  return !name.empty() && name.front() != '-' && std::ranges::all_of(name, allowed);
}

// "fd00::7", perhaps behind a user's name.
bool is_ipv6(std::string_view name) {
  const std::size_t at = name.find('@');
  const std::string_view host = at == std::string_view::npos ? name : name.substr(at + 1);
  if (at != std::string_view::npos && !is_name(name.substr(0, at))) return false;
  const Result<SocketAddress> address = SocketAddress::of_host(std::string(host));
  return address.ok() && address->family() == AF_INET6;
}

struct Entry {
  std::string name;
  std::string_view rest;
};
// Brackets divide an address of IPv6 from what follows it: "me@[fd00::7]:2" has name me@fd00::7 and rest :2. Of any
// other text all up to the first colon is the name.
Result<Entry> parts_of(std::string_view text) {
  const std::size_t open = text.find('['), close = text.find(']');
  if (open != std::string_view::npos && close != std::string_view::npos && open < close) {
    std::string name(text.substr(0, open));
    name += text.substr(open + 1, close - open - 1);
    if (is_ipv6(name)) return Entry{std::move(name), text.substr(close + 1)};
  }
  if (is_ipv6(text)) return Status::invalid_argument(fmt::format("write '{0}' as [{0}]", text));
  const std::size_t colon = std::min(text.find(':'), text.size());
  return Entry{std::string(text.substr(0, colon)), text.substr(colon)};
}

Status add(std::vector<HostSlots>& hosts, std::string_view name, std::string_view slots) {
  if (!is_name(name) && !is_ipv6(name)) {
    return Status::invalid_argument(
        fmt::format("'{}' must be a name or an address of a host, of IPv6 in brackets, as in [fd00::7]", name));
  }
  if (std::ranges::find(hosts, name, &HostSlots::name) != hosts.end()) {
    return Status::invalid_argument(fmt::format("{} stands there twice; give it once, with all its slots", name));
  }
  HostSlots host{.name = std::string(name)};
  if (!slots.empty()) {
    const auto [end, error] = std::from_chars(slots.data(), slots.data() + slots.size(), host.slots);
    if (error != std::errc() || end != slots.data() + slots.size() || host.slots < 0 || host.slots > kMostSlots) {
      return Status::invalid_argument(fmt::format("slots of {} must be 0 to {}, not '{}'", name, kMostSlots, slots));
    }
  }
  hosts.push_back(std::move(host));
  if (hosts.size() > kMostHosts) return Status::invalid_argument(fmt::format("more than {} hosts", kMostHosts));
  return {};
}

Status add(std::vector<HostSlots>& hosts, std::string_view entry) {
  SYNCOPATE_ASSIGN_OR_RETURN(const Entry parts, parts_of(entry));
  const auto& [name, rest] = parts;
  if (rest.empty()) return add(hosts, name, "");
  if (rest == ":") return Status::invalid_argument(fmt::format("'{}' lacks its number of slots, as in HOST:2", entry));
  if (rest.front() != ':') return Status::invalid_argument(fmt::format("'{}' must be HOST or HOST:SLOTS", entry));
  return add(hosts, name, rest.substr(1));
}

// The entry is a host alone.
Status add_with_slots(std::vector<HostSlots>& hosts, std::string_view entry, std::string_view slots) {
  SYNCOPATE_ASSIGN_OR_RETURN(const Entry parts, parts_of(entry));
  return parts.rest.empty() ? add(hosts, parts.name, slots) : add(hosts, entry, slots);
}

std::string entry_text(const HostSlots& host) {
  if (host.name.find(':') == std::string::npos) return fmt::format("{}:{}", host.name, host.slots);
  const std::size_t begin = host.name.find('@') + 1;  // 0 where there is no user
  return fmt::format("{}[{}]:{}", host.name.substr(0, begin), host.name.substr(begin), host.slots);
}

// Adds what a line of a file has, if anything. Open MPI's max_slots allows mpirun more processes; workers fill slots
// alone.
Status add_line(std::vector<HostSlots>& hosts, const std::string& line) {
  constexpr std::string_view kSlots = "slots=";
  std::istringstream words(line);
  std::string name, slots;
  if (!(words >> name)) return {};
  for (std::string word; words >> word;) {
    if (word.starts_with("max_slots=") || word.starts_with("max-slots=")) continue;
    if (!word.starts_with(kSlots) || word.size() == kSlots.size() || !slots.empty()) {
      return Status::invalid_argument("must be HOST, HOST:SLOTS or HOST slots=SLOTS");
    }
    slots = word.substr(kSlots.size());
  }
  return slots.empty() ? add(hosts, name) : add_with_slots(hosts, name, slots);
}

Status check_slots(const std::vector<HostSlots>& hosts) {
  if (hosts.empty()) return Status::invalid_argument("there must be one at least");
  if (total_slots(hosts) == 0) return Status::invalid_argument("one at least must have a slot for a worker");
  return {};
}

std::string numbered(std::size_t host) { return fmt::format("host-{}", host); }

// Returns whether the text is a number, an x, and another number or nothing: "16x4", and "16x", which lacks something.
bool is_product(std::string_view text) {
  const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  const std::size_t cross = text.find('x');
  return cross != std::string_view::npos && cross > 0 && std::ranges::all_of(text.substr(0, cross), is_digit) &&
         std::ranges::all_of(text.substr(cross + 1), is_digit);
}

// Reads "16x4". Requires is_product(text).
Result<std::vector<HostSlots>> parse_product(std::string_view text) {
  const std::size_t cross = text.find('x');
  const std::optional<int> count = parse_number<int>(text.substr(0, cross));
  const std::optional<int> slots = parse_number<int>(text.substr(cross + 1));
  if (!count || !slots || *count < 1 || *count > static_cast<int>(kMostHosts) || *slots < 1 || *slots > kMostSlots) {
    return Status::invalid_argument(fmt::format(
        "'{}' must be 1 to {} hosts, an x, and 1 to {} slots of each, as in 16x4", text, kMostHosts, kMostSlots));
  }
  return numbered_hosts(static_cast<std::size_t>(*count), *slots);
}

}  // namespace

Result<std::vector<HostSlots>> parse_hosts(std::string_view text) {
  if (is_product(text)) return parse_product(text);
  std::vector<HostSlots> hosts;
  std::istringstream entries{std::string(text)};
  for (std::string entry; std::getline(entries, entry, ',');) SYNCOPATE_RETURN_IF_ERROR(add(hosts, entry));
  SYNCOPATE_RETURN_IF_ERROR(check_slots(hosts));
  return hosts;
}

Result<std::vector<HostSlots>> parse_host_file(std::string_view text) {
  std::vector<HostSlots> hosts;
  std::istringstream lines{std::string(text)};
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const Status added = add_line(hosts, line.substr(0, line.find('#')));
    if (!added.ok()) return added.in(fmt::format("line {}", number));
  }
  SYNCOPATE_RETURN_IF_ERROR(check_slots(hosts));
  return hosts;
}

std::vector<HostSlots> numbered_hosts(std::size_t hosts, int slots) {
  std::vector<HostSlots> all;
  for (std::size_t host = 0; host < hosts; ++host) all.push_back({.name = numbered(host), .slots = slots});
  return all;
}

bool are_numbered(const std::vector<HostSlots>& hosts) {
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    if (hosts[host].name != numbered(host) || hosts[host].slots != hosts.front().slots) return false;
  }
  return !hosts.empty();
}

std::string to_text(const std::vector<HostSlots>& hosts) {
  if (are_numbered(hosts)) return fmt::format("{}x{}", hosts.size(), hosts.front().slots);
  std::string text;
  for (const HostSlots& host : hosts) {
    text += (text.empty() ? "" : ",") + entry_text(host);
  }
  return text;
}

int total_slots(const std::vector<HostSlots>& hosts) {
  int slots = 0;
  for (const HostSlots& host : hosts) slots += host.slots;
  return slots;
}

std::vector<std::size_t> hosts_of_workers(const std::vector<HostSlots>& hosts, int workers) {
  assert(workers <= total_slots(hosts));
  std::vector<std::size_t> of_workers;
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    for (int slot = 0; slot < hosts[host].slots && static_cast<int>(of_workers.size()) < workers; ++slot) {
      of_workers.push_back(host);
    }
  }
  return of_workers;
}

std::vector<HostProcesses> processes_by_host(const std::vector<HostSlots>& hosts, int workers, int servers,
                                             bool colocated) {
  std::vector<HostProcesses> all(hosts.size());
  for (const std::size_t host : hosts_of_workers(hosts, workers)) {
    ++all[host].workers;
    all[host].servers += colocated ? 1 : 0;
  }
  std::vector<std::size_t> turns;
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    if (!colocated || hosts[host].slots == 0) turns.push_back(host);
  }
  for (int server = 0; server < servers && !turns.empty(); ++server) {
    ++all[turns[static_cast<std::size_t>(server) % turns.size()]].servers;
  }
  return all;
}

}  // namespace syncopate::experiments
