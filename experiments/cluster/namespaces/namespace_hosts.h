// NamespaceHosts: the hosts of --cluster=namespaces: network namespaces of this machine, joined by a bridge as by a
// switch, behind links that the kernel limits. What passes them are real packets of real connections.
//
// They belong to this process, and leave nothing behind, however it ends: it moves into a network namespace and a mount
// namespace of its own, in which alone the names of the hosts' namespaces exist, and the kernel drops all of these with
// the last process in them. That is this process and those of the run, which end with it (process/guard.h). The
// machine's own network has no part in it: neither a device, nor an address, nor a rule of its own.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/os/file_descriptor.h"
#include "common/status.h"
#include "common/transport/link_shape.h"
#include "experiments/config/simulated_cluster.h"

namespace syncopate::experiments {

class NamespaceHosts {
 public:
  // Makes `hosts` of them, 1 to kMostNamespaces, named as numbered hosts are (host-0), and moves the calling thread to
  // their home. Requires that this process has no other thread; those it starts later are at home, too. Fails with
  // invalid argument, saying what is missing: rights, a program, or a part of the kernel.
  static Result<std::unique_ptr<NamespaceHosts>> make(std::size_t hosts);
  // Moves the calling thread back, if it has made them and is alone.
  ~NamespaceHosts();
  NamespaceHosts(const NamespaceHosts&) = delete;
  NamespaceHosts& operator=(const NamespaceHosts&) = delete;

  // Sets the rate of each host's link, in both directions, none: as fast as the kernel passes packets; and how the
  // first `hosts` of them are joined. The link's delay is left out: the kernel's netem is not on every machine
  // (process/local_host adds it). Requires that no run is under way. Fails with invalid argument if the kernel cannot
  // do that.
  Status join(std::size_t hosts, const std::optional<LinkShape>& link, const FabricChoice& fabric);

  // As long as this lives, what the calling thread opens is of the machine's own network.
  class Outside {
   public:
    explicit Outside(const NamespaceHosts* hosts);  // null: this thread is there already
    ~Outside();
    Outside(const Outside&) = delete;
    Outside& operator=(const Outside&) = delete;

   private:
    const NamespaceHosts* const hosts_;
  };

 private:
  NamespaceHosts() = default;

  Status limit(const std::string& of_host, const std::vector<std::string>& devices, std::int64_t bits_per_second) const;

  std::size_t hosts_ = 0;
  std::size_t joined_ = 0;  // hosts in racks, if there are any
  FabricChoice fabric_;
  FileDescriptor outside_, home_;  // network namespaces
  FileDescriptor outside_mounts_;
};

// The "remote shell" into such a host, of the process that has made it and of those below it: changes into the
// namespace, takes the host's name, and becomes a shell that runs the command. The words that stand before host and
// command:
//   syncopate --enter-namespace host-3 'cd /work && exec env … syncopate --guard …'
std::vector<std::string> namespace_shell(const std::string& program);
bool is_enter_namespace_command_line(int argc, const char* const* argv);
// Returns only if it fails, as ssh does then.
int enter_namespace_main(int argc, char** argv);

}  // namespace syncopate::experiments
