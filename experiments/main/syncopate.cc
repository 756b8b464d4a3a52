#include "experiments/exit_code.h"

int main() { return static_cast<int>(syncopate::experiments::ExitCode::kUsage); }
