// Names of the variables that tell a rank of several where the others are. Launchers set them, a person does, and
// run_experiment does for a program of the person's own.
#pragma once

namespace syncopate::experiments {

// Where rank 0 is reached.
inline constexpr const char* kMasterAddress = "MASTER_ADDR";
inline constexpr const char* kMasterPort = "MASTER_PORT";
// The file with the secret that ranks on several hosts have in common, which this user alone can open.
inline constexpr const char* kSecretFile = "SYNCOPATE_SECRET_FILE";

}  // namespace syncopate::experiments
