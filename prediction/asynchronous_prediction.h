// How long a step of asynchronous workers takes at the least, in closed form. Pure.
//
// No worker waits for another one, so that two bounds remain, those of any closed network of queues: a worker needs a
// step's time with all links to itself, and the busiest link needs its time for one step of each worker. W workers make
// at most W / max of both steps a second (Lazowska, Zahorjan, Graham and Sevcik, "Quantitative System Performance",
// 1984, section 5.2: X <= min(N / R, 1 / D)). For separate servers, evenly sharded, the second is W M / (K B).
//
// A worker with all links to itself pushes each gradient as it becomes ready, in as many parts as there are servers
// that share it; the answer to a part, its next weights, follows on the link's other direction; a layer of the next
// forward pass waits for its own. Queues make real steps longer than the bound where both times are alike.
#pragma once

#include "prediction/step_prediction.h"

namespace syncopate::prediction {

// Returns the mean time between two steps of a worker, at the least. `plan` must be one of servers. Fails as
// predict_step() does, and with invalid argument for another exchange. `plan.overlap` counts as on.
Result<StepPrediction> predict_asynchronous_step(const ModelProfile& profile, double compute, const Network& network,
                                                 const ExchangePlan& plan);

}  // namespace syncopate::prediction
