// ClusterDescription: what a cluster's hosts and links can do, as --cluster=simulated:FILE takes it.
//
// A file is TOML, each line of which may be missing:
//
//   link = "9.41gbit+38us"     # of each host, and a message's way to another one, as --shape
//   inside = "31gbit+4us"      # between processes of one host, as --inside
//   compute = "mlp.json"       # as --compute; a file's path is relative to this one
//   sum = "11GB/s"             # bytes of gradients that are added to others
//   update.adam = "3.1GB/s"    # bytes of weights, by the optimizer's name
//   encode.int8 = "2.4GB/s"    # bytes of gradients, by the codec's name without its ratio
//   decode.int8 = "3.3GB/s"    # bytes of gradients that come out
//
// What a run is told otherwise wins. What it is not told and the file has not is as for every simulated cluster.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "common/status.h"
#include "common/transport/link_shape.h"
#include "experiments/config/simulated_cluster.h"

namespace syncopate::experiments {

struct ClusterDescription {
  std::string file;  // where it stands; empty for one that stands nowhere
  std::optional<LinkShape> link;
  std::optional<LinkShape> inside;
  std::optional<ComputeModel> compute;
  // Bytes a second.
  double sum = 0;                        // 0: it takes no time
  std::map<std::string, double> update;  // by optimizer
  std::map<std::string, double> encode;  // by codec
  std::map<std::string, double> decode;

  // Returns the rates for a run with this optimizer and this codec, "int8" or "topk:0.01"; empty: none. What the
  // description lacks takes no time.
  ProcessingModel processing_of(const std::string& optimizer, const std::string& codec) const;

  bool operator==(const ClusterDescription&) const = default;
};

// Fails with invalid argument, naming line or entry, for what is not such a file: an unknown name, a name that stands
// twice, a value that is none; and
// for one without entries.
Result<ClusterDescription> read_cluster(std::string_view text);
// Reads a file; a path of its compute model becomes relative to the working folder. Fails as read_cluster() does.
Result<ClusterDescription> open_cluster(const std::string& path);

// Returns the file that read_cluster() reads, below `comment`, of which each line begins with #.
std::string to_toml(const ClusterDescription& cluster, std::string_view comment);

}  // namespace syncopate::experiments
