// HttpServer: serves one page over HTTP on the loopback interface, from a thread of its own.
//
// Whoever can connect may send anything, at any pace, without harm to the run or to other clients: a request has a
// bounded length, a connection a deadline, and of more than kMostConnections the oldest is closed for the newest. The
// library of the distribution (cpp-httplib 0.11) was considered: it waits as long as a client sends a byte now and
// then, with a thread for each, and brings OpenSSL and Brotli along.
#pragma once

#include <memory>

#include "common/clock.h"
#include "common/os/file_descriptor.h"
#include "common/status.h"
#include "common/threads.h"
#include "experiments/lab/board/http_answer.h"

namespace syncopate::experiments {

class HttpServer {
 public:
  static constexpr std::size_t kMostConnections = 32;

  // Listens on 127.0.0.1:`port`, where 0 is a free port, and serves `page`, whose body is made on the server's thread.
  // A connection is closed when it is older than `deadline`. Fails with invalid argument, saying why, if the port
  // cannot be had.
  static Result<std::unique_ptr<HttpServer>> start(int port, HttpPage page,
                                                   Duration deadline = std::chrono::seconds(5));
  // Closes all connections.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const { return port_; }

 private:
  HttpServer(FileDescriptor listener, FileDescriptor stop, int port, HttpPage page, Duration deadline);

  const FileDescriptor stop_;  // an eventfd
  const int port_;
  std::unique_ptr<Threads::Handle> thread_;
};

}  // namespace syncopate::experiments
