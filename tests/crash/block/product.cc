#include "tests/crash/block/product.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "tests/crash/kill/failure.h"

namespace siltfs::blocktest {

using killtest::Ended;

namespace {

constexpr size_t kMostFindings = 12;

}  // namespace

Ended Product::Make() const {
  // Small chunks and little memory give the index more work.
  return killtest::Run(
      {options_.siltfs, "mkfs", "--chunk-avg", "2K", "--index-memory", "3M", options_.store},
      options_.scratch);
}

Ended Product::Mount(const std::vector<std::string>& environment) const {
  std::vector<std::string> command;
  if (!environment.empty()) {
    command.emplace_back("env");
    command.insert(command.end(), environment.begin(), environment.end());
  }
  command.insert(command.end(), {options_.siltfs, "mount", options_.store, options_.mountpoint,
                                 "-o", "log=" + LogPath()});
  return killtest::Run(command, options_.scratch);
}

Ended Product::Unmount() const {
  // A daemon that never ends must not stop the test.
  return killtest::Run({"timeout", "90", options_.siltfs, "umount", options_.mountpoint},
                       options_.scratch);
}

CheckReport Product::Check(bool data) const {
  std::vector<std::string> command{options_.siltfs, "fsck",   options_.store, "-n",
                                   "--json",        "--quiet"};
  if (data) command.emplace_back("--data");
  const Ended ended = killtest::Run(command, options_.scratch);
  CheckReport report{.code = ended.code, .text = {}};
  if (ended.code == 0) return report;
  report.text = fmt::format("siltfs fsck -n{} ends with {}: ", data ? " --data" : "", ended.code);
  // Read the file, because Run returns only the beginning of the output, which may be long.
  std::ifstream output(options_.scratch + "/output");
  const auto document = nlohmann::json::parse(output, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object() || !document.contains("findings")) {
    report.text += ended.errors + ended.output;
    return report;
  }
  const auto& findings = document["findings"];
  size_t count = 0;
  for (const auto& finding : findings) {
    if (++count <= kMostFindings) report.text += "\n        " + finding.dump();
  }
  if (count > kMostFindings)
    report.text += fmt::format("\n        and {} more", count - kMostFindings);
  return report;
}

bool Product::IsMounted() const {
  std::ifstream table("/proc/self/mounts");
  for (std::string line; std::getline(table, line);) {
    std::istringstream words(line);
    std::string source, place;
    words >> source >> place;
    if (place == options_.mountpoint) return true;
  }
  return false;
}

std::string Product::LogTail() const {
  constexpr std::streamoff kMost = 2000;
  std::ifstream log(LogPath(), std::ios::ate);
  if (!log) return {};
  log.seekg(std::max<std::streamoff>(0, log.tellg() - std::streampos(kMost)));
  std::ostringstream text;
  text << log.rdbuf();
  return text.str();
}

void Product::ClearLog() const { std::filesystem::remove(LogPath()); }

int Product::Finish(std::chrono::seconds patience) const {
  if (IsMounted()) umount2(options_.mountpoint.c_str(), MNT_DETACH);
  const auto end = std::chrono::steady_clock::now() + patience;
  int highest = 0;
  for (;;) {
    int status = 0;
    const pid_t child = waitpid(-1, &status, WNOHANG);
    if (child < 0) return highest;  // no child is left
    if (child > 0) {
      highest =
          std::max(highest, WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
      continue;
    }
    if (std::chrono::steady_clock::now() > end) {
      for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
        std::ifstream children(task.path() / "children");
        for (pid_t pid = 0; children >> pid;) kill(pid, SIGKILL);
      }
      highest = std::max(highest, 128 + SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace siltfs::blocktest
