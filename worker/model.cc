#include "worker/model.h"
