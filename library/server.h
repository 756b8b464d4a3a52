// A parameter server of a job: a process that one of the ranks has started, and that ends with it. It is given
// all that it must know by its standard input, and meets the others through it:

//   in    the job's secret, the job's name (Group::give_secret)
//   in    lines of "NAME VALUE", see ServerPlan; a line "end"
//   out   a line "GROUP VALUE" for a rendezvous; in: as many lines as the group has members
//   in    "lost INDEX", where the others go on without that one of the group
//   in    its end, once all ranks have taken their last weights
//   out   then, if the plan says so, lines as traced_lines() and served_line() make them

#pragma once

#include <iosfwd>
#include <string>

#include "common/rendezvous.h"
#include "common/step_file.h"
#include "common/trace/trace_plan.h"
#include "common/transport/run_keys.h"
#include "library/group.h"
#include "library/training_options.h"
#include "ps/server/chunk_weights.h"

namespace syncopate::library {

struct ServerPlan {
  RunKeys keys;
  std::string run_id;
  std::string group;                            // "group": the name that the ranks connect with
  int parent = 0;                               // "parent": the pid of the rank that has started it
  int workers = 1;                              // "workers"
  int server = 0;                               // "server": its number
  std::string address = {};                     // "address": Group::address of its host; none on one host
  Wire wire = Wire::kShm;                       // "wire"
  std::optional<LinkShape> shape = {};          // "shape": the link of this server; sockets alone have one
  Duration timeout = std::chrono::seconds(30);  // "timeout_ms"
  bool tells = false;                           // "tells 1": what it has had to do
  std::optional<TracePlan> trace = {};          // "trace": what of that it traces
  TrainingOptions options;                      // all else

  static Result<ServerPlan> read(std::istream& in);
};

// Whoever started this process takes part in its place.
class ParentRendezvous final : public Rendezvous {
 public:
  // Both must outlive it.
  ParentRendezvous(std::istream& in, std::ostream& out) : in_(in), out_(out) {}
  Result<std::vector<std::string>> exchange(const std::string& group, int rank, int size, const std::string& value,
                                            TimePoint deadline) override;

 private:
  std::istream& in_;
  std::ostream& out_;
};

// Serves until all workers have left or are lost, and `orders`, where this server is told who is lost, have ended;
// returns what that took. A worker that ends before is the ranks' matter: they raise, and whoever has started this
// server ends; or they say that they go on.
// What it has traced, if anything, is left in `traced`.
// If there is a function, it makes the updates.
Result<ToldServer> serve(const ServerPlan& plan, Rendezvous& rendezvous, std::istream& orders, ToldTrace& traced,
                         const ps::UpdateFunction* function = nullptr);

// The whole of such a process: is told by its standard input, serves, and returns its exit code. What has failed is on
// standard error.
int run_server(const ps::UpdateFunction* function = nullptr);

// "served", the server's number and bits_of() its figures.
std::string served_line(const ToldServer& told);

// For each event a line of "traced" and numbers_of() it; and one of "untraced" and how many more did not fit, if any.
std::string traced_lines(const ToldTrace& told);

}  // namespace syncopate::library
