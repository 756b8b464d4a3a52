// Secret files: bytes that a person, or a program of theirs, gives to a run and that nobody else may know.
#pragma once

#include <string>

#include "common/status.h"
#include "common/transport/secret_text.h"

namespace syncopate {

// A secret file holds so many bytes.
inline constexpr std::size_t kFewestSecretBytes = 32, kMostSecretBytes = 4096;

// Returns the bytes of a file, unchanged. Fails with invalid argument, saying what to do, if there are too few or too
// many, if the file does not belong to the user or root, or if others may read it; with not found if it does not exist.
// Messages begin with the path, and none shows the contents.
Result<SecretText> read_secret_file(const std::string& path);
// Fails with invalid argument, saying how to make one, for another number of bytes than a secret has.
Status check_secret_size(std::size_t bytes);

}  // namespace syncopate
