#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "common/text/number.h"
#include "prediction/published_table.h"
#include "prediction/reproduction/tables.h"
#include "prediction/scaling_fit.h"

namespace syncopate::prediction {
namespace {

// What the rows of a table have in common that are taken from it.
struct PublishedCluster {
  const char* table;
  std::string (*label_of)(const PublishedRow& row);  // what a row is of, but for its size; empty if it is not taken
  std::vector<int> fitted;                           // the sizes, in workers, by which the others are predicted
  Network network;                                   // its rate is the nominal one
  ExchangePlan plan = {.exchange = Exchange::kServers, .colocated = true, .protocol = ServerProtocol::kPullThenPush};
  int gpus_of_worker = 1;  // which add their gradients up before the network is used
};

std::string page_label(const PublishedRow& row) {
  const std::string& system = row.text("system");
  return fmt::format("{}, {}, batch {}, {}", system.substr(system.find(" on ") + 4), row.text("model"),
                     row.text("batch_per_gpu"), row.text("mode"));
}

bool is_synthetic(const PublishedRow& row) { return row.noted("data") == "synthetic"; }
bool is_cluster(const PublishedRow& row) { return row.text("system").ends_with("cluster"); }

std::string one_host(const PublishedRow& row) { return is_synthetic(row) && !is_cluster(row) ? page_label(row) : ""; }

std::string several_hosts(const PublishedRow& row) {
  return is_synthetic(row) && is_cluster(row) ? page_label(row) : "";
}

std::string daint_label(const PublishedRow& row) {
  return is_synthetic(row) && row.noted("variable_update") == "parameter_server" ? "Piz Daint" : "";
}

std::string mxnet_label(const PublishedRow& row) { return fmt::format("MXNet, {}", row.text("model")); }

std::string bert_label(const PublishedRow& row) {
  const std::string precision = row.text("note").substr(0, row.text("note").find(','));
  if (precision != "FP32" && precision != "AMP") return "";
  const std::string& system = row.text("system");  // as in "OneFlow W/O clip bsz=96"
  return fmt::format("{}, {}, batch {}", system.substr(0, system.find(" bsz=")), precision, row.text("batch_per_gpu"));
}

const std::vector<PublishedCluster>& published_clusters() {
  static const std::vector<PublishedCluster> clusters = {
      {"piz_daint",
       &daint_label,
       {1, 8, 64},
       {.bytes_per_second = 1e10},
       {.exchange = Exchange::kServers,
        .sharding = Sharding::kWhole,
        .colocated = true,
        .protocol = ServerProtocol::kPullThenPush}},
      {.table = "mxnet_p2_16xlarge",
       .label_of = &mxnet_label,
       .fitted = {1, 2, 4},
       .network = {.bytes_per_second = 2.5e9},
       .gpus_of_worker = 16},
      {"tensorflow_page", &one_host, {1, 2, 4}, {.bytes_per_second = 1.25e9, .workers_per_host = 8}},
      {.table = "tensorflow_page",
       .label_of = &several_hosts,
       .fitted = {1, 2, 4},
       .network = {.bytes_per_second = 1.25e9},
       .gpus_of_worker = 8},
      {"dlperf_bert",
       &bert_label,
       {1, 8, 16},
       {.alpha = 5e-6, .bytes_per_second = 1.25e10, .workers_per_host = 8},
       {.exchange = Exchange::kRing, .bucket_bytes = 25e6}}};
  return clusters;
}

// Rows that differ in the number of workers alone.
struct MeasuredSizes {
  std::string label;
  std::string profile;
  double batch = 0;                  // of a worker
  std::map<int, double> throughput;  // by workers
  std::map<int, int> servers;        // the same

  double seconds(int workers) const { return workers * batch / throughput.at(workers); }
};

std::vector<MeasuredSizes> sizes_of(const PublishedCluster& cluster) {
  static const std::map<std::string, std::string> profiles = {{"InceptionV3", "inception3"},
                                                              {"ResNet-50", "resnet50"},
                                                              {"ResNet-152", "resnet152"},
                                                              {"AlexNet", "alexnet"},
                                                              {"VGG16", "vgg16"},
                                                              {"BERT-base", "bert-base-128"},
                                                              {"alexnet", "mxnet-alexnet"},
                                                              {"inception-v3", "inception3"}};
  std::vector<MeasuredSizes> all;
  for (const PublishedRow& row : published_table(cluster.table)) {
    const std::string label = cluster.label_of(row);
    const int workers = static_cast<int>(row.number("gpus")) / cluster.gpus_of_worker;
    if (label.empty() || workers == 0) continue;
    auto sizes = std::ranges::find(all, label, &MeasuredSizes::label);
    if (sizes == all.end()) {
      const double batch = cluster.gpus_of_worker * row.number("batch_per_gpu");
      sizes = all.insert(all.end(), {label, profiles.at(row.text("model")), batch, {}, {}});
    }
    const std::string servers = row.text("servers");  // as in "40 (colocated)"
    sizes->throughput[workers] = row.number("throughput");
    sizes->servers[workers] = parse_number<int>(servers.substr(0, servers.find(' '))).value_or(1);
  }
  return all;
}

bool crosses_sockets(const std::string& label, int workers) {
  return label.starts_with("DGX-1") && label.ends_with("replicated") && workers == 8;
}

void add_cells(const PublishedCluster& cluster, const MeasuredSizes& sizes, Reproduction& table) {
  const ModelProfile profile = profile_named(sizes.profile);
  const auto at = [&](int workers) {
    MeasuredStep step{cluster.network, cluster.plan, sizes.seconds(workers)};
    step.network.workers = workers;
    step.plan.servers = cluster.plan.sharding == Sharding::kWhole ? sizes.servers.at(workers) : step.network.hosts();
    return step;
  };
  std::vector<MeasuredStep> measured;
  for (const int workers : cluster.fitted) measured.push_back(at(workers));
  const ScalingFit fit = *ScalingFit::of(profile, measured.front().seconds, measured);
  for (const auto& [workers, throughput] : sizes.throughput) {
    const MeasuredStep cell = at(workers);
    const FittedValue step = *fit.step(cell.network, cell.plan);
    const double samples = workers * sizes.batch;
    const bool is_fitted = std::ranges::find(cluster.fitted, workers) != cluster.fitted.end();
    const bool is_left_out = crosses_sockets(sizes.label, workers);
    table.cells.push_back({.setup = sizes.label,
                           .workers = workers,
                           .measured = throughput,
                           .predicted = samples / step.median,
                           .use = is_fitted     ? CellUse::kCalibrated
                                  : is_left_out ? CellUse::kLeftOut
                                                : CellUse::kPredicted,
                           .low = samples / step.high,
                           .high = samples / step.low});
  }
}

}  // namespace

Reproduction fitted_sizes() {
  Reproduction table{
      .what = "Every setup of the tables above that was measured at four sizes or more, each by three sizes of its own",
      .source = "those of piz-daint, mxnet, tf-page and dlperf-bert",
      .unit = "samples/s",
      .model =
          "What predict --measured makes of three sizes: the step alone, what an exchange and its slowest worker cost, "
          "and the share of a link, each as likely as the measurements make it",
      .calibrated = {"Piz Daint: 1, 8 and 64 workers, with a link of 10 GB/s at the most.",
                     "MXNet and the EC2 cluster: 1, 2 and 4 hosts, whose GPUs add their gradients up first: a worker "
                     "each, with a server on each host.",
                     "One host: 1, 2 and 4 GPUs. BERT: 1, 8 and 16 GPUs."},
      .left_out =
          {"Rows of real data, which wait for their input; MXNet and the EC2 cluster within a host.",
           "8 GPUs of a DGX-1 by NCCL (3 cells, shown): 1 to 4 GPUs say nothing of the way between its two sockets.",
           "horovod: two sizes a cluster, so that none is left; 4 workers of Piz Daint, of another way to update."},
      .median_bar = 0.04,
      .worst_bar = 0.12,
      .inside_bar = 0.9};
  for (const PublishedCluster& cluster : published_clusters()) {
    for (const MeasuredSizes& sizes : sizes_of(cluster)) add_cells(cluster, sizes, table);
  }
  return table;
}

}  // namespace syncopate::prediction
