#include "tools/siltfs/usage_client.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <memory>
#include <utility>

#include "fs/control/protocol.h"
#include "store/env/mountpoint.h"
#include "store/env/polled_signals.h"
#include "tools/siltfs/long_command.h"
#include "tools/siltfs/mounted_path.h"
#include "tools/siltfs/progress_display.h"
#include "tools/siltfs/store_place.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

// So long a line from the daemon is waited for before signals are looked at.
constexpr std::chrono::milliseconds kInterval{100};

constexpr std::array<std::string_view, 4> kSteps = {"names below the paths", "their files",
                                                    "all files of the store", "their chunks"};

struct Found {
  control::DaemonAddress address;
  UsagePath path;
};

Result<Found> FindPath(const std::string& path) {
  // A mountpoint lies in another directory's file system, so it is looked up in the mount table.
  SILTFS_ASSIGN_OR_RETURN(const auto mounted, FindMount(path));
  if (mounted) {
    SILTFS_RETURN_IF_ERROR(control::Identify(*mounted).status());
    return Found{*mounted, {.directory = kRootInode}};
  }
  const SplitPath split(path);
  Found found;
  SILTFS_ASSIGN_OR_RETURN(found.address, MountAround(split.directory));
  SILTFS_ASSIGN_OR_RETURN(const SourceAttributes directory, DirectoryAt(split.directory));
  SILTFS_ASSIGN_OR_RETURN(const SourceAttributes source, SourceAt(path));
  if (source.file_system != directory.file_system) return NotMounted(path);
  found.path = source.IsDirectory() ? UsagePath{.directory = source.inode}
                                    : UsagePath{.directory = directory.inode, .name = split.name};
  return found;
}

// Reads the daemon's lines until the result comes, shows progress and looks at signals.
class UsageReader {
 public:
  UsageReader(Surroundings& surroundings, const UsageQuestion& question, PolledSignals& signals)
      : question_(question),
        signals_(signals),
        display_(surroundings, {.command = question.command,
                                .subject = question.subject,
                                .quiet = question.quiet,
                                .descriptor = std::nullopt}) {}

  Result<Json> Read(LocalStream& stream) {
    auto result = ReadLines(stream);
    display_.Clear();
    return result;
  }

 private:
  Result<Json> ReadLines(LocalStream& stream) {
    SILTFS_RETURN_IF_ERROR(stream.SetTimeout(kInterval));
    while (true) {
      const auto line = stream.ReadLine(control::kMaxResponseBytes);
      if (signals_.TerminationRequested() && !std::exchange(stopped_, true))
        stream.FinishWriting().IgnoreError("the daemon has ended the work");
      if (signals_.TakeStatusRequest()) display_.Show(step_, /*asked=*/true);
      if (line.status().Is(StatusCode::kInterrupted)) continue;  // the daemon is only silent
      SILTFS_RETURN_IF_ERROR(line.status());
      if (!*line) return Status(StatusCode::kAborted, "the daemon of the mount has ended");
      if (const auto progress = usage::DecodeProgress(**line)) {
        Show(*progress);
        continue;
      }
      SILTFS_ASSIGN_OR_RETURN(const bool taken, question_.take(**line));
      if (!taken) return control::DecodeResponse(**line);
    }
  }

  void Show(const UsageProgress& progress) {
    const auto number = static_cast<unsigned>(progress.step);
    step_ = {.number = number,
             .name = kSteps[number - 1],
             .done = progress.done,
             .total = progress.total};
    display_.Show(step_, /*asked=*/false);
  }

  const UsageQuestion& question_;
  PolledSignals& signals_;
  ProgressDisplay display_;
  ProgressStep step_{.number = 1, .name = kSteps[0]};
  bool stopped_ = false;
};

}  // namespace

Result<UsagePlaces> FindUsagePaths(const std::vector<std::string>& paths) {
  UsagePlaces places;
  for (const std::string& path : paths) {
    SILTFS_ASSIGN_OR_RETURN(const Found found, FindPath(path));
    if (places.paths.empty()) {
      places.address = found.address;
    } else if (found.address.store != places.address.store ||
               found.address.device != places.address.device) {
      return Status(StatusCode::kUnsupported,
                    fmt::format("is not in the same mounted store as {}", paths[0]))
          .At(path);
    }
    places.paths.push_back(found.path);
  }
  return places;
}

namespace {

Result<Json> AskDaemon(Surroundings& surroundings, const UsageQuestion& question) {
  SILTFS_ASSIGN_OR_RETURN(const auto signals, PolledSignals::Block());
  const control::DaemonAddress& address = question.places.address;
  // What the kernel still holds would be missing.
  SILTFS_RETURN_IF_ERROR(SendWrites(address.mountpoint));
  SILTFS_RETURN_IF_ERROR(control::Ask(address, "sync", control::Patience::WhileItRuns()).status());
  SILTFS_ASSIGN_OR_RETURN(const auto session, control::OpenSession(address, usage::kSession));
  if (session.greeting.value("version", uint64_t{0}) != usage::kVersion)
    return Status(StatusCode::kNeedsNewer, "the daemon of the mount is of another version");
  const std::string request = usage::EncodeWanted(question.wanted);
  if (request.size() > usage::kMaxRequestBytes) {
    return Status(StatusCode::kUnsupported,
                  "there are too many paths for one call; give directories instead of their files");
  }
  SILTFS_RETURN_IF_ERROR(session.stream->WriteAll(request));
  return UsageReader(surroundings, question, *signals).Read(*session.stream);
}

}  // namespace

Result<Json> AskUsage(Surroundings& surroundings, const UsageQuestion& question) {
  const auto begin = std::chrono::steady_clock::now();
  auto result = AskDaemon(surroundings, question);
  if (!result.ok()) {
    Status failure = ExplainInterruption(std::move(result).status(), "nothing has changed");
    if (failure.path().empty()) return std::move(failure).At(question.subject);
    return failure;
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  (*result)["store"] = question.places.address.store;
  (*result)["seconds"] = seconds.count();
  return result;
}

std::string JoinBelow(const std::string& path, const std::string& below) {
  if (below.empty()) return path;
  return path.ends_with('/') ? path + below : path + "/" + below;
}

ExitCode WarnOfLeftOut(Surroundings& surroundings, uint64_t left_out) {
  if (left_out == 0) return ExitCode::kDone;
  Warn(surroundings, fmt::format("you may not read {} of the files and directories, so they do not "
                                 "count",
                                 left_out));
  return ExitCode::kSomeFailed;
}

}  // namespace siltfs
