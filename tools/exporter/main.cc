// siltfs-exporter ADDRESS: the program behind "siltfs metrics --listen ADDRESS". It is separate, so
// that the file system's daemon is not linked with an HTTP server.
#include <fmt/format.h>

#include <iostream>
#include <string>

#include "store/env/listening_socket.h"
#include "store/env/process.h"
#include "store/env/service_manager.h"
#include "tools/exporter/metrics_server.h"
#include "tools/exporter/mounted_stores.h"

namespace siltfs {
namespace {

void Say(const std::string& sentence) {
  std::cerr << fmt::format("siltfs: {}\n", sentence) << std::flush;
}

// The service goes on without a service manager that cannot be told.
void Announce(const Status& told) {
  if (!told.ok()) Say(fmt::format("warning: {}", told.ToString()));
}

Status Serve(const std::string& text) {
  SILTFS_ASSIGN_OR_RETURN(const ListenAddress address, ListenAddress::Parse(text));
  // Signals must be blocked before any thread starts.
  SILTFS_ASSIGN_OR_RETURN(const auto signals, TerminationSignals::Block());
  SILTFS_ASSIGN_OR_RETURN(const ListeningSocket socket, ListeningSocket::Open(address));
  MountedStores stores{MountedStores::Options()};
  SILTFS_ASSIGN_OR_RETURN(auto server,
                          MetricsServer::Start(socket, {.metrics = [&stores](MetricsFormat format) {
                                                 return stores.Metrics(format);
                                               }}));
  const std::string where = address.path.empty()
                                ? fmt::format("http://{}/metrics", socket.name())
                                : fmt::format("/metrics of the socket {}", socket.name());
  const ServiceManager manager = ServiceManager::FromEnvironment();
  Announce(manager.Ready(fmt::format("serving {}", where)));
  Say(fmt::format("the metrics of all mounted stores are served at {}", where));
  signals->Wait();
  Announce(manager.Stopping("ending"));
  return Status::Ok();
}

}  // namespace
}  // namespace siltfs

int main(int argc, char** argv) {
  const siltfs::Status occupied = siltfs::OccupyStandardDescriptors();
  if (!occupied.ok()) return 1;
  if (argc != 2) {
    siltfs::Say("usage: siltfs metrics --listen ADDRESS");
    return 2;
  }
  const siltfs::Status served = siltfs::Serve(argv[1]);
  if (served.ok()) return 0;
  siltfs::Say(served.ToString());
  return served.Is(siltfs::StatusCode::kInvalidArgument) ? 2 : 1;
}
