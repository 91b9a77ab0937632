// The service of tests/support/s3_server.py, which is started for a test and ended with it.
//
// Thread-safety: one thread at a time; any number of threads may send requests to the service.
#pragma once

#include <string>
#include <vector>

#include "store/env/env.h"

namespace siltfs::testing {

class S3Server {
 public:
  // Further arguments of the script. Aborts the test if the server cannot be started.
  explicit S3Server(const std::vector<std::string>& arguments = {});
  ~S3Server();
  S3Server(const S3Server&) = delete;
  S3Server& operator=(const S3Server&) = delete;

  // "127.0.0.1:PORT".
  std::string authority() const { return "127.0.0.1:" + std::to_string(port_); }
  uint16_t port() const { return port_; }

  // Gives the server a command in JSON, which s3_server.py describes, and returns its answer.
  std::string Control(const std::string& command);
  // The number of requests so far whose line in the log contains `part`.
  size_t CountRequests(const std::string& part);
  // Ends the server; connections to its port are refused from now on.
  void Stop();

 private:
  std::string ReadLine();

  int64_t pid_ = -1;
  int input_ = -1;
  int output_ = -1;
  uint16_t port_ = 0;
};

}  // namespace siltfs::testing
