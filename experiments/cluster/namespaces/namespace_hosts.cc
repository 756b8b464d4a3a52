#include "experiments/cluster/namespaces/namespace_hosts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include "common/os/readiness.h"
#include "experiments/cluster/launcher/launcher.h"
#include "experiments/cluster/namespaces/namespace_plan.h"

namespace syncopate::experiments {
namespace {

constexpr const char* kNames = "/var/run/netns";  // where ip keeps them
constexpr const char* kHostsFile = "/etc/hosts";
constexpr std::chrono::seconds kToolEndsWithin{10};
constexpr int kShellFailed = 255;  // as of ssh
constexpr std::string_view kEnter = "--enter-namespace";

Status wrong(const std::string& what) { return Status::invalid_argument("--cluster=namespaces: " + what); }

Status refused(const char* what) {
  return wrong(fmt::format("the kernel refuses to {} ({}); --cluster=simulated needs nothing of it", what,
                           std::strerror(errno)));
}

std::string last_line_in(const FileDescriptor& file) {
  std::string text(4096, '\0');
  const ssize_t count = pread(file.get(), text.data(), text.size(), 0);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  std::istringstream lines(text);
  std::string last;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) last = line;
  }
  return last;
}

// Runs ip or tc, told `script`, and waits for its end.
Status run_tool(const std::vector<std::string>& command, const std::string& script) {
  if (script.empty()) return {};
  const FileDescriptor output(memfd_create("output", MFD_CLOEXEC));
  const std::string& tool = command.front();
  Result<StartedChild> child =
      start_child(command, {}, tool, fmt::format("/proc/self/fd/{}", output.get()), std::string_view(script));
  if (!child.ok()) {
    return wrong(fmt::format("{} cannot be started; install it, as with apt-get install iproute2", tool));
  }
  child->input = FileDescriptor();
  if (!child->handle.ends_before(SteadyClock().now() + kToolEndsWithin)) {
    std::vector<StartedChild> late;
    late.push_back(std::move(*child));
    kill_and_reap(late);
    return wrong(fmt::format("{} has not ended within {} s", tool, kToolEndsWithin.count()));
  }
  int status = 0;
  waitpid(child->pid, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  const std::string said = last_line_in(output);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
    return wrong(fmt::format("there is no {}; install it, as with apt-get install iproute2", tool));
  }
  return wrong(fmt::format("{} could not do what it was told{}{}", tool, said.empty() ? "" : ": ", said));
}

Status ip(const std::string& script) { return run_tool({"ip", "-batch", "-"}, script); }
Status ip_in(std::size_t host, const std::string& script) {
  return run_tool({"ip", "-n", name_of_namespace(host), "-batch", "-"}, script);
}

FileDescriptor own_namespace(const char* kind) {
  return FileDescriptor(open(fmt::format("/proc/thread-self/ns/{}", kind).c_str(), O_RDONLY | O_CLOEXEC));
}

// Mounts made from here on are seen here alone; those that the machine makes later are seen here, too.
Status take_private_mounts() {
  if (mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) return refused("keep mounts private");
  if (mkdir(kNames, 0755) != 0 && errno != EEXIST) {
    return wrong(fmt::format("{} cannot be made ({})", kNames, std::strerror(errno)));
  }
  if (mount("syncopate", kNames, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=755") != 0) {
    return refused("mount a folder for names");
  }
  return {};
}

// Lets the hosts' names be resolved here and in the hosts, as Open MPI asks.
Status name_hosts(std::size_t hosts) {
  const std::string path = fmt::format("{}/names", kNames);
  {
    std::ifstream before(kHostsFile);
    std::ofstream file(path);
    file << before.rdbuf();
    file.clear();  // an empty file before sets the failure
    file << "\n" << names_of_namespaces(hosts);
    if (!file.flush()) return wrong("the names of the hosts cannot be written");
  }
  if (mount(path.c_str(), kHostsFile, nullptr, MS_BIND, nullptr) != 0) return refused("give hosts their names");
  unlink(path.c_str());  // what is mounted stays
  return {};
}

int fail(const std::string& what) {
  fmt::print(stderr, "{}: {}\n", what, std::strerror(errno));
  return kShellFailed;
}

}  // namespace

Result<std::unique_ptr<NamespaceHosts>> NamespaceHosts::make(std::size_t hosts) {
  if (geteuid() != 0) {
    return wrong(
        "needs root, to make network namespaces; be root (sudo), or use --cluster=simulated, or --shape, which "
        "emulates links without");
  }
  std::unique_ptr<NamespaceHosts> made(new NamespaceHosts);
  made->hosts_ = hosts;
  made->outside_ = own_namespace("net");
  made->outside_mounts_ = own_namespace("mnt");
  if (unshare(CLONE_NEWNET | CLONE_NEWNS) != 0) return refused("make a network namespace");
  made->home_ = own_namespace("net");
  SYNCOPATE_RETURN_IF_ERROR(take_private_mounts());
  SYNCOPATE_RETURN_IF_ERROR(name_hosts(hosts));
  SYNCOPATE_RETURN_IF_ERROR(ip(switch_script()));
  for (std::size_t host = 0; host < hosts; ++host) {
    SYNCOPATE_RETURN_IF_ERROR(ip(host_script(host)));
    SYNCOPATE_RETURN_IF_ERROR(ip_in(host, inside_host_script(host)));
  }
  return made;
}

NamespaceHosts::~NamespaceHosts() {
  if (!home_.open()) return;
  setns(outside_.get(), CLONE_NEWNET);
  setns(outside_mounts_.get(), CLONE_NEWNS);
}

Status NamespaceHosts::join(std::size_t hosts, const std::optional<LinkShape>& link, const FabricChoice& fabric) {
  if (fabric != fabric_ || hosts != joined_) {
    SYNCOPATE_RETURN_IF_ERROR(ip(without_fabric_script(joined_, fabric_)));
    fabric_ = FabricChoice();
    SYNCOPATE_RETURN_IF_ERROR(ip(fabric_script(hosts, fabric)));
    joined_ = hosts;
    fabric_ = fabric;
  }
  const std::int64_t rate = link ? link->bits_per_second : 0;
  for (std::size_t host = 0; host < hosts_; ++host) {
    SYNCOPATE_RETURN_IF_ERROR(limit("", {fmt::format("to-{}", host)}, rate));
    SYNCOPATE_RETURN_IF_ERROR(limit(name_of_namespace(host), {"net"}, rate));
  }
  return limit("", rack_devices(fabric), rate == 0 ? 0 : rack_rate(rate, hosts, fabric));
}

Status NamespaceHosts::limit(const std::string& of_host, const std::vector<std::string>& devices,
                             std::int64_t bits_per_second) const {
  std::string script;
  for (const std::string& device : devices) {
    // A device that has none of its own has one that does not limit it.
    script += fmt::format("qdisc replace dev {} root {}\n", device,
                          bits_per_second > 0 ? limit_words(bits_per_second) : "pfifo limit 1000");
  }
  std::vector<std::string> command{"tc"};
  if (!of_host.empty()) command.insert(command.end(), {"-n", of_host});
  command.insert(command.end(), {"-batch", "-"});
  return run_tool(command, script);
}

NamespaceHosts::Outside::Outside(const NamespaceHosts* hosts) : hosts_(hosts) {
  if (hosts_ != nullptr) setns(hosts_->outside_.get(), CLONE_NEWNET);
}

NamespaceHosts::Outside::~Outside() {
  if (hosts_ != nullptr) setns(hosts_->home_.get(), CLONE_NEWNET);
}

std::vector<std::string> namespace_shell(const std::string& program) { return {program, std::string(kEnter)}; }

bool is_enter_namespace_command_line(int argc, const char* const* argv) { return argc == 4 && argv[1] == kEnter; }

int enter_namespace_main(int, char** argv) {
  const std::string host = argv[2];
  const FileDescriptor there(open(fmt::format("{}/{}", kNames, host).c_str(), O_RDONLY | O_CLOEXEC));
  if (!there.open() || setns(there.get(), CLONE_NEWNET) != 0) return fail("cannot enter " + host);
  // Open MPI's daemons of one name would share a folder.
  if (unshare(CLONE_NEWUTS) != 0 || sethostname(host.data(), host.size()) != 0) {
    return fail("cannot be called " + host);
  }
  execl("/bin/sh", "sh", "-c", argv[3], nullptr);
  return fail("cannot start a shell");
}

}  // namespace syncopate::experiments
