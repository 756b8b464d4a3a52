// The program of workers on GPUs: syncopate, linked with CUDA's libraries.
#include <cstdio>

#include "experiments/cluster/process/cuda/cuda_accelerator.h"
#include "experiments/cluster/process/private_memory.h"
#include "experiments/cluster/process/process_main.h"

int main(int argc, char** argv) {
  using namespace syncopate::experiments;
  leave_no_core_dumps();
  if (is_process_command_line(argc, argv)) return process_main(argc, argv, &cuda_accelerator());
  std::fputs("syncopate_gpu: a part of run_experiment --device=cuda; it is not started by hand\n", stderr);
  return 2;
}
