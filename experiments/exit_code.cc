#include "experiments/exit_code.h"
