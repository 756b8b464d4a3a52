// ServerProcesses: the parameter servers of a job that one rank starts (Group::servers_to_start), for a program that is
// not Python's. They end with the thread that has started them, however that ends.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/os/file_descriptor.h"
#include "common/os/process_handle.h"
#include "library/group.h"
#include "library/strategy_exchange.h"
#include "library/tcp_rendezvous.h"
#include "library/training_options.h"

namespace syncopate::library {

struct ServerProcessesOptions {
  std::string program;   // the path of syncopate-server
  std::string name;      // with which ranks and servers connect
  int servers = 1;       // of the job
  OptionTexts training;  // what TrainingOptions::parse reads, alike on all ranks
};

class ServerProcesses {
 public:
  // Does not wait for them: each takes part in what the ranks do under the same name. Fails with not found if there is
  // no such program.
  static Result<std::unique_ptr<ServerProcesses>> start(const Group& group, const TcpRendezvous& rendezvous,
                                                        const ServerProcessesOptions& options);
  // Kills those that have not ended.
  ~ServerProcesses();

  std::vector<StartedServer> started() const;

  // After all ranks have left: returns once the servers have ended by themselves. Fails with deadline exceeded, or
  // internal if one has ended otherwise.
  Status end(TimePoint deadline);

 private:
  struct Server {
    int number = 0;
    pid_t pid = 0;
    ProcessHandle handle;
    FileDescriptor words;  // a socket: its standard input and output
    std::unique_ptr<TcpRendezvous> rendezvous;
    std::thread relay;  // takes part in rendezvous in its place
    bool has_ended = false;
  };

  ServerProcesses() = default;
  Status start_one(const Group& group, const TcpRendezvous& rendezvous, const ServerProcessesOptions& options,
                   int number);

  std::vector<std::unique_ptr<Server>> servers_;
};

}  // namespace syncopate::library
