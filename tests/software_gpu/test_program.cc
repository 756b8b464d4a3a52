// What a program of tests on the software GPU has beside its tests: a fault that is found fails the test that runs, and
// the runs that tests start take place on the software GPU, too.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

extern "C" void software_gpu_found(const char* fault) { ADD_FAILURE() << "software GPU: " << fault; }

namespace {

const bool kTellsRuns = [] {
  const std::string folder = SOFTWARE_GPU_FOLDER;
  setenv("SYNCOPATE_PROGRAM", (folder + "/syncopate").c_str(), 1);
  setenv("LD_LIBRARY_PATH", folder.c_str(), 1);  // where libcuda.so.1 is
  return true;
}();

}  // namespace
