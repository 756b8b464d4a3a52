// A whole job under each kind of consistency, over a network: shards as threads and workers as threads.
#include <gtest/gtest.h>
