#include "prediction/host_prices.h"

namespace syncopate::prediction {

int server_hosts(const ExchangePlan& plan) {
  const bool has_servers = plan.exchange == Exchange::kServers || plan.exchange == Exchange::kByteps;
  return has_servers && !plan.colocated ? plan.servers : plan.spare_servers;
}

double price_of_hour(const HostPrices& prices, const Network& network, const ExchangePlan& plan) {
  return network.hosts() * prices.worker + server_hosts(plan) * prices.server;
}

double cost_per_million_samples(const HostPrices& prices, const Network& network, const ExchangePlan& plan,
                                double samples_per_second) {
  constexpr double kSecondsOfHour = 3600;
  constexpr double kMillion = 1e6;
  return price_of_hour(prices, network, plan) / kSecondsOfHour * kMillion / samples_per_second;
}

}  // namespace syncopate::prediction
