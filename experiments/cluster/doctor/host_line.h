// HostLine: the doctor's line to its agent on a host (doctor_agent.h).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "common/clock.h"
#include "common/os/file_descriptor.h"
#include "common/status.h"
#include "common/transport/secret_text.h"
#include "experiments/cluster/doctor/line_reader.h"
#include "experiments/cluster/launcher/launcher.h"

namespace syncopate::experiments {

class HostLine {
 public:
  // Starts `command`, which becomes the agent or the remote shell to it. What keeps it from starting is what the first
  // receive() says.
  HostLine(const std::vector<std::string>& command, const SecretText& keys);
  // Ends the agent.
  ~HostLine();
  HostLine(const HostLine&) = delete;
  HostLine& operator=(const HostLine&) = delete;

  void send(const nlohmann::json& request);
  // Returns the next line that is a JSON object, and passes over others, which the shell there may print first. Fails
  // with deadline exceeded, and with peer lost, saying how the shell has ended and what it said last. Once it has
  // failed it fails at once.
  Result<nlohmann::json> receive(TimePoint deadline);

 private:
  std::string how_it_ended();

  FileDescriptor output_;
  LineReader lines_;
  std::optional<StartedChild> child_;
  std::string last_said_;
  Status failure_;
};

}  // namespace syncopate::experiments
