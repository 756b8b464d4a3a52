#include "experiments/cluster/control/control_identity.h"

#include <fmt/format.h>

namespace syncopate::experiments {

std::string text_of(const ProcessIdentity& process) {
  return fmt::format("{}-{}/{}", name_of(process.role), process.rank, process.incarnation);
}

RunKeys::Pair control_key(const RunKeys& keys, const ProcessIdentity& process) {
  return keys.pair("control " + text_of(process));
}

RunKeys::Pair coordinator_key(const RunKeys& keys) { return keys.pair("control coordinator"); }

}  // namespace syncopate::experiments
