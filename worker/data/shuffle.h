// Shuffle: in which order the training samples come to the workers.
#pragma once

namespace syncopate::worker {

// kGlobal: each epoch permutes the whole set and deals it out to the workers. kShard: each worker has every W-th
// sample, and each epoch permutes those (tf.data's shard, then shuffle). kWorker: each worker permutes the whole set
// for itself, and goes through it at its own pace, as asynchronous workers of TensorFlow do whose data sets are not
// sharded. kOff: the set is dealt out in its own order, the same in every epoch.
enum class Shuffle { kGlobal, kShard, kWorker, kOff };

}  // namespace syncopate::worker
