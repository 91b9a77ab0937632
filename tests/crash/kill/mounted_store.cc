#include "tests/crash/kill/mounted_store.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "tests/crash/kill/failure.h"
#include "tests/crash/kill/process.h"

namespace siltfs::killtest {
namespace {

// No other process can have this pid, because the child has not been waited for.
void SendKill(pid_t child) {
  if (child <= 1) throw Failure("there is no process to kill");
  if (kill(child, SIGKILL) != 0 && errno != ESRCH) throw SystemFailure("kill");
}

}  // namespace

MountedStore::MountedStore(std::string siltfs, std::string directory)
    : siltfs_(std::move(siltfs)),
      directory_(std::move(directory)),
      store_(directory_ + "/store"),
      mountpoint_(directory_ + "/mount") {
  RunOrFail("mkfs", store_);
  if (mkdir(mountpoint_.c_str(), 0755) != 0) throw SystemFailure("mkdir " + mountpoint_);
}

MountedStore::~MountedStore() {
  try {
    if (daemon_ > 0) Kill();
    Detach();
  } catch (const std::exception& error) {
    fmt::print(stderr, "siltfs-killtest: {}\n", error.what());
  }
}

void MountedStore::RunOrFail(const std::string& command, const std::string& argument) {
  const Ended ended = Run({siltfs_, command, argument}, directory_);
  if (ended.code == 0) return;
  throw Failure(
      fmt::format("siltfs {} {}: exit code {}: {}", command, argument, ended.code, ended.errors));
}

bool MountedStore::IsMounted() const {
  std::ifstream table("/proc/self/mounts");
  for (std::string line; std::getline(table, line);) {
    std::istringstream words(line);
    std::string source, place;
    words >> source >> place;
    if (place == mountpoint_) return true;
  }
  return false;
}

double MountedStore::Mount() {
  const auto begin = std::chrono::steady_clock::now();
  const Ended ended =
      Run({siltfs_, "mount", store_, mountpoint_, "-o", "log=" + directory_ + "/log"}, directory_);
  struct stat stat {};
  const bool answers = ended.code == 0 && ::stat(mountpoint_.c_str(), &stat) == 0;
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  if (ended.code != 0)
    throw Failure(fmt::format("siltfs mount: exit code {}: {}", ended.code, ended.errors));
  FindDaemon();
  if (!answers) throw Failure(mountpoint_ + ": does not answer though it was mounted");
  return taken.count();
}

void MountedStore::FindDaemon() {
  const Ended ended = Run({siltfs_, "stat", mountpoint_, "--json"}, directory_);
  const auto statistics = nlohmann::json::parse(ended.output, nullptr, /*allow_exceptions=*/false);
  const auto pid = statistics.is_object() ? statistics.find("pid") : statistics.end();
  if (ended.code != 0 || pid == statistics.end() || !pid->is_number_integer())
    throw Failure("siltfs stat: reports no pid of the daemon: " + ended.errors);
  if (!IsRunning(pid->get<pid_t>())) throw Failure("siltfs stat: its pid is no child of this test");
  daemon_ = pid->get<pid_t>();
}

void MountedStore::KillAndForget(pid_t daemon) {
  SendKill(daemon);
  WaitFor(daemon);
  ReapTheDead();
}

void MountedStore::Kill() {
  if (!IsRunning(daemon_)) {
    const int code = WaitFor(std::exchange(daemon_, -1));
    throw Failure(fmt::format("the daemon ended by itself with code {}", code));
  }
  KillAndForget(std::exchange(daemon_, -1));
}

void MountedStore::MountAndKill(std::chrono::microseconds after) {
  // With -f, the started process is the daemon itself.
  const pid_t mounting = Start({siltfs_, "mount", "-f", store_, mountpoint_});
  std::this_thread::sleep_for(after);
  const bool alive = IsRunning(mounting);
  KillAndForget(mounting);
  Detach();
  if (!alive) throw Failure("siltfs mount -f: ended by itself during the recovery");
}

void MountedStore::Detach() {
  // Unmounts repeatedly, because something may be mounted over the store's mount.
  for (int i = 0; i < 4 && IsMounted(); ++i) {
    if (umount2(mountpoint_.c_str(), MNT_DETACH) == 0) continue;
    Run({"fusermount3", "-u", "-z", mountpoint_}, directory_);
  }
  if (IsMounted()) throw Failure(mountpoint_ + ": cannot be unmounted");
}

void MountedStore::Unmount() {
  RunOrFail("umount", mountpoint_);
  const int code = WaitFor(std::exchange(daemon_, -1));
  ReapTheDead();
  if (code != 0) throw Failure(fmt::format("the daemon ended with code {}", code));
  if (IsMounted()) throw Failure(mountpoint_ + ": still mounted after siltfs umount");
}

void MountedStore::Check() {
  const Ended ended = Run({siltfs_, "fsck", store_, "-n", "--data"}, directory_);
  if (ended.code == 0) return;
  throw Failure(fmt::format("siltfs fsck -n --data: exit code {}: {}{}", ended.code, ended.output,
                            ended.errors));
}

}  // namespace siltfs::killtest
