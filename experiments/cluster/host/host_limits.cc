#include "experiments/cluster/host/host_limits.h"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "common/os/file_descriptor.h"
#include "experiments/cluster/host/control_group.h"

namespace syncopate::experiments {
namespace {

using Json = nlohmann::ordered_json;

std::string first_line_of(const std::string& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

std::int64_t hard_limit(__rlimit_resource resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0) return 0;
  return limit.rlim_max == RLIM_INFINITY ? std::numeric_limits<std::int64_t>::max()
                                         : static_cast<std::int64_t>(limit.rlim_max);
}

// sysfs may be that of another network namespace.
int mtu_of(const std::string& interface) {
  ifreq request{};
  if (interface.empty() || interface.size() >= sizeof(request.ifr_name)) return 0;
  std::memcpy(request.ifr_name, interface.c_str(), interface.size());
  const FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return ioctl(socket.get(), SIOCGIFMTU, &request) == 0 ? request.ifr_mtu : 0;
}

}  // namespace

HostLimits limits_here(const std::string& interface) {
  HostLimits limits{.cores_online = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)),
                    .core_quota = core_quota(),
                    .descriptors = hard_limit(RLIMIT_NOFILE),
                    .interface = interface,
                    .mtu = mtu_of(interface),
                    .gpu_driver = first_line_of("/sys/module/nvidia/version")};
  const std::int64_t locked = hard_limit(RLIMIT_MEMLOCK);
  if (locked != std::numeric_limits<std::int64_t>::max()) limits.locked_bytes = locked;
  return limits;
}

std::string to_json_line(const HostLimits& limits) {
  const Json json = {{"cores_online", limits.cores_online},
                     {"core_quota", limits.core_quota ? Json(*limits.core_quota) : Json()},
                     {"descriptors", limits.descriptors},
                     {"locked_bytes", limits.locked_bytes ? Json(*limits.locked_bytes) : Json()},
                     {"interface", limits.interface},
                     {"mtu", limits.mtu},
                     {"gpu_driver", limits.gpu_driver}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<HostLimits> parse_host_limits(std::string_view line) {
  const Json json = Json::parse(line, nullptr, false);
  try {
    HostLimits limits{.cores_online = json.at("cores_online"),
                      .descriptors = json.at("descriptors"),
                      .interface = json.at("interface"),
                      .mtu = json.at("mtu"),
                      .gpu_driver = json.at("gpu_driver")};
    if (!json.at("core_quota").is_null()) limits.core_quota = json.at("core_quota").get<double>();
    if (!json.at("locked_bytes").is_null()) limits.locked_bytes = json.at("locked_bytes").get<std::int64_t>();
    return limits;
  } catch (const Json::exception&) {
    return Status::data_loss("it has not said its limits as this program does");
  }
}

}  // namespace syncopate::experiments
