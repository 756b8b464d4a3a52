// Where the build put what tests start and read.
#pragma once

#include <string>

namespace syncopate::testing_support {

// The program for the processor that was built together with these tests.
const std::string& syncopate_program();

// The root of the tree that these tests were built from.
const std::string& source_directory();

}  // namespace syncopate::testing_support
