// Names of the variables that tell a rank of several who it is and where the others are. Launchers set them, a person
// does, and run_experiment does for a program of the person's own.
#pragma once

namespace syncopate {

// Its number, and how many there are, as torch.distributed reads them.
inline constexpr const char* kRank = "RANK";
inline constexpr const char* kWorldSize = "WORLD_SIZE";
inline constexpr const char* kLocalRank = "LOCAL_RANK";
// Where rank 0 is reached.
inline constexpr const char* kMasterAddress = "MASTER_ADDR";
inline constexpr const char* kMasterPort = "MASTER_PORT";
// By which other hosts reach this one.
inline constexpr const char* kOwnAddress = "SYNCOPATE_ADDRESS";
// The file with the secret that ranks on several hosts have in common, which this user alone can open.
inline constexpr const char* kSecretFile = "SYNCOPATE_SECRET_FILE";

}  // namespace syncopate
