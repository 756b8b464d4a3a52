#include <fmt/format.h>

#include <atomic>
#include <utility>

#include "common/launch/launcher_places.h"
#include "common/launch/rank_variables.h"
#include "library/api_strategy.h"

namespace syncopate::api {
namespace {

// The jobs of this process so far: those that it has one after another are told apart at rank 0's address.
std::atomic<int> jobs = 0;

std::optional<library::Wire> engine_wire(const std::optional<Wire>& wire) {
  if (!wire) return std::nullopt;
  return *wire == Wire::kSockets ? library::Wire::kSockets : library::Wire::kShm;
}

constexpr const char* kAlone = "127.0.0.1:0";  // where a rank alone meets its servers

std::string given_or(const std::string& given, const Variables& environment, const char* name) {
  return given.empty() ? text_in(environment, name) : given;
}

struct Place {
  int rank = 0;
  int size = 1;
  std::string address;
};

// What is given counts as if the environment had it.
::syncopate::Result<Place> place_of(const JobOptions& options, Variables environment) {
  const std::size_t colon = options.address.rfind(':');
  if (!options.address.empty() && colon == std::string::npos) {
    return ::syncopate::Status::invalid_argument(
        fmt::format("address '{}': must be HOST:PORT, as in 127.0.0.1:29500", options.address));
  }
  if (colon != std::string::npos) {
    environment[kMasterAddress] = options.address.substr(0, colon);
    environment[kMasterPort] = options.address.substr(colon + 1);
  }
  if (options.rank) environment[kRank] = std::to_string(*options.rank);
  if (options.size) environment[kWorldSize] = std::to_string(*options.size);
  SYNCOPATE_ASSIGN_OR_RETURN(const std::optional<TaskPlace> task, rank_place(environment));
  if (!task) return Place{.address = options.address.empty() ? kAlone : options.address};
  if (task->size > library::kMostMembers) {
    return ::syncopate::Status::invalid_argument(
        fmt::format("rank {} of {}: a job has 1 to {} ranks, from 0", task->rank, task->size, library::kMostMembers));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(std::string address, meeting_address(*task, environment));
  return Place{.rank = task->rank, .size = task->size, .address = std::move(address)};
}

::syncopate::Result<std::shared_ptr<Meeting>> meet(const JobOptions& options) {
  const Variables environment = own_variables();
  SYNCOPATE_ASSIGN_OR_RETURN(Place place, place_of(options, environment));
  if (options.timeout <= std::chrono::milliseconds::zero()) {
    return ::syncopate::Status::invalid_argument(
        fmt::format("a timeout of {} ms: must be above 0", options.timeout.count()));
  }
  auto meeting = std::make_shared<Meeting>();
  const std::string meets_at = place.size == 1 ? "" : place.address.substr(0, place.address.rfind(':'));
  if (place.rank == 0) {
    SYNCOPATE_ASSIGN_OR_RETURN(meeting->server, library::RendezvousServer::start(place.address));
    place.address = meeting->server->address();
  }
  SYNCOPATE_ASSIGN_OR_RETURN(meeting->rendezvous,
                             library::TcpRendezvous::make(place.address, fmt::format("{}/", ++jobs)));
  SYNCOPATE_ASSIGN_OR_RETURN(
      meeting->group, library::Group::join({.rank = place.rank,
                                            .size = place.size,
                                            .wire = engine_wire(options.wire),
                                            .timeout = options.timeout,
                                            .meets_at = meets_at,
                                            .address = given_or(options.own_address, environment, kOwnAddress),
                                            .secret_file = given_or(options.secret_file, environment, kSecretFile)},
                                           *meeting->rendezvous));
  if (meeting->server) meeting->server->require_proof(meeting->rendezvous->prefix(), meeting->group->keys());
  return meeting;
}

}  // namespace

Result<Job> init(const JobOptions& options) { return Job::join(options); }

Result<Job> Job::join(const JobOptions& options) {
  ::syncopate::Result<std::shared_ptr<Meeting>> meeting = meet(options);
  if (!meeting.ok()) return status_of(meeting.status(), "joining the job");
  auto communicator = library::Communicator::connect(group_of(*meeting), "main");
  if (!communicator.ok()) return status_of(communicator.status(), *(*meeting)->group, "joining the job");
  Collective collective(std::make_unique<Collective::Impl>(Collective::Impl{std::move(*communicator)}));
  return Job(std::make_unique<Job::Impl>(Job::Impl{std::move(*meeting), std::move(collective)}));
}

Job::Job(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Job::Job(Job&& other) noexcept = default;
Job& Job::operator=(Job&& other) noexcept = default;
Job::~Job() = default;

int Job::rank() const { return impl_->meeting->group->rank(); }
int Job::size() const { return impl_->meeting->group->size(); }
Collective& Job::collective() { return impl_->collective; }

Result<Strategy> Job::connect(const ParamLayout& layout, const StrategyOptions& options) {
  auto impl = Strategy::Impl::connect(impl_->meeting, fmt::format("strategy{}", ++impl_->strategies), layout, options);
  if (!impl.ok()) return impl.status();
  return Strategy(std::move(*impl));
}

Status Job::leave() {
  impl_->meeting->group->watch().forgive();
  return impl_->collective.impl_->finish(impl_->collective.impl_->communicator->barrier(), "leaving the job");
}

Collective::Collective(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Collective::Collective(Collective&& other) noexcept = default;
Collective& Collective::operator=(Collective&& other) noexcept = default;
Collective::~Collective() = default;

Status Collective::Impl::finish(std::uint64_t ticket, const char* operation) {
  const ::syncopate::Status status = communicator->wait(ticket);
  return status_of(status, communicator->group(), operation, -1, communicator->missed());
}

Status Collective::sum(std::span<float> values, float scale) {
  return impl_->finish(impl_->communicator->sum({values}, scale), "summing");
}

Status Collective::broadcast(std::span<std::byte> bytes, int root) {
  if (root < 0 || root >= impl_->communicator->group().size()) {
    return Status(Code::kInvalidArgument, fmt::format("broadcast from rank {}: ranks are 0 to {}", root,
                                                      impl_->communicator->group().size() - 1));
  }
  return impl_->finish(impl_->communicator->broadcast(bytes, root), "broadcasting");
}

Status Collective::barrier() { return impl_->finish(impl_->communicator->barrier(), "waiting at a barrier"); }

}  // namespace syncopate::api
