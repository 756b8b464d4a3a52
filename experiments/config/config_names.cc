// The names of the choices in RunSettings.
#include "experiments/config/run_settings.h"

namespace syncopate::experiments {

using allreduce::ScheduleKind;

const char* name_of(DeviceKind value) {
  switch (value) {
    case DeviceKind::kCpu:
      return "cpu";
    case DeviceKind::kCuda:
      return "cuda";
  }
  return "";
}

const char* name_of(CollectiveKind value) {
  switch (value) {
    case CollectiveKind::kBySize:
      return "auto";
    case CollectiveKind::kDirect:
      return name_of(ScheduleKind::kDirect);
    case CollectiveKind::kRing:
      return name_of(ScheduleKind::kRing);
    case CollectiveKind::kHalvingDoubling:
      return name_of(ScheduleKind::kHalvingDoubling);
    case CollectiveKind::kDoubling:
      return name_of(ScheduleKind::kDoubling);
    case CollectiveKind::kTree:
      return name_of(ScheduleKind::kTree);
    case CollectiveKind::kBinomialTree:
      return name_of(ScheduleKind::kBinomialTree);
    case CollectiveKind::kHierarchical:
      return name_of(ScheduleKind::kHierarchical);
    case CollectiveKind::kMpi:
      return "mpi";
    case CollectiveKind::kNccl:
      return "nccl";
    case CollectiveKind::kNcclRing:
      return "nccl:ring";
    case CollectiveKind::kNcclTree:
      return "nccl:tree";
  }
  return "";
}

const char* name_of(TransportKind value) {
  switch (value) {
    case TransportKind::kShm:
      return "shm";
    case TransportKind::kIpc:
      return "ipc";
    case TransportKind::kTcp:
      return "tcp";
    case TransportKind::kSockets:
      return "sockets";
  }
  return "";
}

const char* name_of(LauncherKind value) {
  switch (value) {
    case LauncherKind::kLocal:
      return "local";
    case LauncherKind::kMpirun:
      return "mpirun";
    case LauncherKind::kSlurm:
      return "slurm";
  }
  return "";
}
const char* name_of(BackendKind value) { return value == BackendKind::kOneDnn ? "onednn" : "reference"; }

const char* name_of(ClusterKind value) {
  switch (value) {
    case ClusterKind::kReal:
      return "real";
    case ClusterKind::kNamespaces:
      return "namespaces";
    case ClusterKind::kSimulated:
      return "simulated";
  }
  return "";
}

const char* name_of(simulation::NetworkModel value) {
  switch (value) {
    case simulation::NetworkModel::kFifo:
      return "fifo";
    case simulation::NetworkModel::kFrames:
      return "frames";
    case simulation::NetworkModel::kFluid:
      return "fluid";
  }
  return "";
}

const char* name_of(worker::EmbeddingKind value) {
  return value == worker::EmbeddingKind::kSparse ? "sparse" : "dense";
}

const char* name_of(WorkDivision value) { return value == WorkDivision::kShared ? "shared" : "quota"; }

const char* name_of(Aggregation value) { return value == Aggregation::kOff ? "off" : "host"; }

const char* name_of(WeightGather value) { return value == WeightGather::kCollective ? "collective" : "on-demand"; }
const char* name_of(TensorExchange value) { return value == TensorExchange::kByKind ? "by-kind" : "auto"; }
const char* name_of(DataShard value) { return value == DataShard::kRandom ? "random" : "labels"; }

const char* name_of(worker::WeightInit value) {
  switch (value) {
    case worker::WeightInit::kByLayer:
      return "by-layer";
    case worker::WeightInit::kHe:
      return "he";
    case worker::WeightInit::kGlorot:
      return "glorot";
    case worker::WeightInit::kLeCun:
      return "lecun";
  }
  return "";
}

const char* name_of(worker::PixelScale value) { return value == worker::PixelScale::kShifted ? "shifted" : "unit"; }

const char* name_of(worker::Task value) {
  switch (value) {
    case worker::Task::kAuto:
      return "auto";
    case worker::Task::kClasses:
      return "classes";
    case worker::Task::kRegression:
      return "regression";
  }
  return "";
}

const char* name_of(worker::Normalisation value) {
  switch (value) {
    case worker::Normalisation::kStandard:
      return "standard";
    case worker::Normalisation::kMinMax:
      return "minmax";
    case worker::Normalisation::kNone:
      return "none";
  }
  return "";
}

const char* name_of(worker::Shuffle value) {
  switch (value) {
    case worker::Shuffle::kGlobal:
      return "global";
    case worker::Shuffle::kShard:
      return "shard";
    case worker::Shuffle::kWorker:
      return "worker";
    case worker::Shuffle::kOff:
      return "off";
  }
  return "";
}

const char* name_of(StalenessRate value) { return value == StalenessRate::kKeep ? "keep" : "divide"; }

std::string servers_text(const RunSettings& config) {
  if (!config.colocated) return std::to_string(config.servers);
  return config.spare_servers > 0 ? "colocated+" + std::to_string(config.spare_servers) : "colocated";
}

}  // namespace syncopate::experiments
