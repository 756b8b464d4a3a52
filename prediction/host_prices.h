// What training costs, from the prices of hosts. Pure.
#pragma once

#include "prediction/communication_cost.h"
#include "prediction/step_prediction.h"

namespace syncopate::prediction {

// In one currency, whichever, for each host and hour; each at least 0.
struct HostPrices {
  double worker = 0;  // a host with workers, with a server beside them or not
  double server = 0;  // a host with a server alone
};

// Returns how many hosts with a server alone a plan needs. Servers on the hosts of workers need none.
int server_hosts(const ExchangePlan& plan);

// Returns what all hosts of a plan cost for an hour.
double price_of_hour(const HostPrices& prices, const Network& network, const ExchangePlan& plan);

// Returns what a million samples cost, in the currency of `prices`: all hosts are paid for the whole time.
// `samples_per_second` is the whole job's, above 0.
double cost_per_million_samples(const HostPrices& prices, const Network& network, const ExchangePlan& plan,
                                double samples_per_second);

}  // namespace syncopate::prediction
