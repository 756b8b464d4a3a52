#include "allreduce/nccl/nccl_environment.h"

#include <fmt/format.h>

#include <cstdlib>

namespace syncopate::allreduce {
namespace {

// In a file's name, NCCL replaces %h and %p.
std::string without_patterns(const std::string& path) {
  std::string escaped;
  for (const char character : path) {
    escaped += character;
    if (character == '%') escaped += '%';
  }
  return escaped;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> nccl_environment(const NcclPlace& place) {
  std::vector<std::pair<std::string, std::string>> variables{
      // NCCL would serve inquiries about its health at a fixed port of this host.
      {"NCCL_RAS_ENABLE", "0"},
  };
  if (!place.algorithm.empty()) variables.emplace_back("NCCL_ALGO", place.algorithm);
  // Else the first operation connects the ranks, and a direct call knows no deadline.
  if (place.direct_calls) variables.emplace_back("NCCL_RUNTIME_CONNECT", "0");
  if (place.shares_gpu) {
    variables.emplace_back("NCCL_HOSTID", fmt::format("syncopate-rank-{}", place.rank));
    variables.emplace_back("NCCL_NET", "Socket");
    // Hosts that share NVLink would be connected by it.
    variables.emplace_back("NCCL_MNNVL_ENABLE", "0");
  }
  if (const std::string only = place.interface.empty() && place.shares_gpu ? "lo" : place.interface; !only.empty()) {
    variables.emplace_back("NCCL_SOCKET_IFNAME", "=" + only);
  }
  if (!place.log_file.empty()) {
    variables.emplace_back("NCCL_DEBUG", "INFO");
    variables.emplace_back("NCCL_DEBUG_SUBSYS", place.log_operations ? "INIT,ENV,TUNING" : "INIT,ENV");
    variables.emplace_back("NCCL_DEBUG_FILE", without_patterns(place.log_file));
  }
  return variables;
}

std::string nccl_log_file() {
  const char* const value = std::getenv("NCCL_DEBUG_FILE");
  std::string path;
  for (const char* next = value; next != nullptr && *next != '\0'; ++next) {
    path += *next;
    if (next[0] == '%' && next[1] == '%') ++next;
  }
  return path;
}

}  // namespace syncopate::allreduce
