// What the memory of a host with workers must hold at the least. Pure.
#pragma once

#include "prediction/step_prediction.h"

namespace syncopate::prediction {

// Returns bytes, all as float32. Under allreduce each worker holds weights, gradients and `state_floats` floats of the
// optimizer's for each parameter (Rajbhandari et al., "ZeRO", 2020, section 3.1, of training in half precision), or its
// share of the last, from stage 2 on of gradients, and at stage 3 of weights, beside the largest tensor's gradient, and
// weights, as a whole; other tensors of its layer, and buckets that are under way, are not counted. With servers it
// holds weights and gradients, and a server on its host what it has of the weights, their gradients' sum and the
// optimizer's state. Activations, which grow with the batch, samples and the program are not counted: no profile says
// what they take. `plan` must not be BytePS's, whose servers hold parts of other sizes.
double worker_host_bytes(const ModelProfile& profile, const Network& network, const ExchangePlan& plan,
                         int state_floats);

// Returns the same of a worker with a stage of a pipeline: `own_bytes` of weights, with gradients, the optimizer's
// state and, where a step has several microbatches, the gradients of one; and `borrowed_bytes` of weights that another
// stage updates, with gradients. Activations, and all weights while a pipeline's first worker sends them to be
// evaluated or saved, are not counted.
double stage_host_bytes(double own_bytes, double borrowed_bytes, int microbatches, int state_floats);

}  // namespace syncopate::prediction
