// What parameter servers hold, and what the busiest link carries for them. Pure.
#pragma once

#include <vector>

#include "prediction/step_prediction.h"

namespace syncopate::prediction {

// Returns the part of the model on a server under even shards; of colocated ones if there are spare ones besides.
double even_part(const Network& network, const ExchangePlan& plan);

// The bytes of the model on each server: as many values as the plan has servers, spare ones last.
std::vector<double> bytes_on_servers(const ModelProfile& profile, const ExchangePlan& plan);

// Returns the network as servers see it: with the workers that push. Where hosts are aggregated that is one of each.
Network of_pushers(const Network& network, const ExchangePlan& plan);

// Returns the bytes that the busiest link carries in each direction while each worker that pushes pulls the model
// once and pushes its gradient once. A link is full duplex, so that a separate server's carries W M / K either way when
// M is sharded evenly, and a host's with w workers w M. On a host with workers and a server, both share the link:
// 2(p-1) M / p with a server on each of p hosts of a worker (Jiang et al., OSDI 2020, section 2.2). Servers go to hosts
// in turn, and what a worker exchanges with one of its own host goes over no link.
double busiest_link_bytes(const ModelProfile& profile, const Network& network, const ExchangePlan& plan);

}  // namespace syncopate::prediction
