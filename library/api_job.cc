#include <fmt/format.h>

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "library/api_strategy.h"

namespace syncopate::api {
namespace {

// The jobs of this process so far: those that it has one after another are told apart at rank 0's address.
std::atomic<int> jobs = 0;

// Returns the first of these variables that is set.
::syncopate::Result<std::optional<int>> number_of(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* const text = std::getenv(name);
    if (text == nullptr) continue;
    const std::string_view digits = text;
    int number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error == std::errc() && end == digits.data() + digits.size()) return std::optional(number);
    return ::syncopate::Status::invalid_argument(fmt::format("{}={}: must be a whole number", name, digits));
  }
  return std::optional<int>();
}

// Returns what is given, or what the environment has.
std::string text_of(const std::string& given, const char* name) {
  const char* const text = std::getenv(name);
  return given.empty() && text != nullptr ? text : given;
}

std::optional<library::Wire> engine_wire(const std::optional<Wire>& wire) {
  if (!wire) return std::nullopt;
  return *wire == Wire::kSockets ? library::Wire::kSockets : library::Wire::kShm;
}

struct Place {
  int rank = 0;
  int size = 1;
  std::string address;
};

::syncopate::Result<Place> place_of(const JobOptions& options) {
  std::optional<int> rank = options.rank, size = options.size;
  if (!rank) {
    SYNCOPATE_ASSIGN_OR_RETURN(rank, number_of({"RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"}));
  }
  if (!size) {
    SYNCOPATE_ASSIGN_OR_RETURN(size, number_of({"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS"}));
  }
  if (rank.has_value() != size.has_value()) {
    return ::syncopate::Status::invalid_argument(
        "only one of rank and size is known: set both RANK and WORLD_SIZE, or neither for a job of one process");
  }
  Place place{.rank = rank.value_or(0), .size = size.value_or(1), .address = options.address};
  if (place.size < 1 || place.size > library::kMostMembers || place.rank < 0 || place.rank >= place.size) {
    return ::syncopate::Status::invalid_argument(
        fmt::format("rank {} of {}: a job has 1 to {} ranks, from 0", place.rank, place.size, library::kMostMembers));
  }
  if (!place.address.empty()) return place;
  const char* const host = std::getenv("MASTER_ADDR");
  const char* const port = std::getenv("MASTER_PORT");
  if (place.size == 1) {
    place.address = "127.0.0.1:0";  // a rank alone meets its servers there
  } else if (host != nullptr && port != nullptr) {
    place.address = fmt::format("{}:{}", host, port);
  } else {
    return ::syncopate::Status::invalid_argument(
        "it is not known where rank 0 can be reached: set MASTER_ADDR, 127.0.0.1 on one host, and MASTER_PORT to a "
        "free "
        "port, or give the address");
  }
  return place;
}

::syncopate::Result<std::shared_ptr<Meeting>> meet(const JobOptions& options) {
  SYNCOPATE_ASSIGN_OR_RETURN(Place place, place_of(options));
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
                                            .address = text_of(options.own_address, "SYNCOPATE_ADDRESS"),
                                            .secret_file = text_of(options.secret_file, "SYNCOPATE_SECRET_FILE")},
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
