#include "tests/support/build_paths.h"

namespace syncopate::testing_support {

const std::string& syncopate_program() {
  static const std::string path = SYNCOPATE_PROGRAM;
  return path;
}

const std::string& source_directory() {
  static const std::string path = SYNCOPATE_SOURCE_DIR;
  return path;
}

}  // namespace syncopate::testing_support
