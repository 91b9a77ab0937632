// siltfs clone
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "fs/clone/clone_message.h"
#include "fs/control/client.h"
#include "fs/control/protocol.h"
#include "store/base/size_text.h"
#include "store/base/thread_annotations.h"
#include "store/env/mountpoint.h"
#include "tools/siltfs/command.h"
#include "tools/siltfs/json_output.h"
#include "tools/siltfs/long_command.h"
#include "tools/siltfs/mounted_path.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

struct CloneArguments {
  std::string source;
  std::string target;
  bool json = false;
  bool quiet = false;
};

// Where the clone's source and its name are.
struct Places {
  control::DaemonAddress address;
  clone::Wanted wanted;
};

Result<Places> Resolve(const CloneArguments& arguments) {
  const SplitPath target(arguments.target);
  if (target.name.empty())
    return Status(StatusCode::kAlreadyExists, "exists already").At(arguments.target);
  Places places;
  SILTFS_ASSIGN_OR_RETURN(places.address, MountAround(target.directory));
  SILTFS_ASSIGN_OR_RETURN(const SourceAttributes parent, DirectoryAt(target.directory));
  SILTFS_ASSIGN_OR_RETURN(const SourceAttributes found, SourceAt(arguments.source));
  if (found.file_system != parent.file_system) {
    return Status(StatusCode::kUnsupported,
                  fmt::format("is not in the same mounted file system as {}", arguments.target))
        .At(arguments.source);
  }
  places.wanted = {.source = found.inode, .parent = parent.inode, .name = target.name};
  return places;
}

class Cloner {
 public:
  const std::atomic<uint64_t>& files() const { return files_; }

  // Stops the clone. The result then says whether it was made nevertheless.
  void Interrupt() {
    const MutexLock lock(mutex_);
    interrupted_ = true;
    if (stream_ != nullptr) stream_->FinishWriting().IgnoreError("the daemon has ended the clone");
  }

  Result<Json> Run(const Places& places, const LongCommand& command) {
    // Data that the kernel still holds would be missing in the clone.
    SILTFS_RETURN_IF_ERROR(SendWrites(places.address.mountpoint));
    SILTFS_RETURN_IF_ERROR(
        control::Ask(places.address, "sync",
                     command.WhileItRuns("nothing was copied", std::chrono::milliseconds(0)))
            .status());
    SILTFS_ASSIGN_OR_RETURN(const auto session, control::OpenSession(places.address, "clone"));
    if (session.greeting.value("version", uint64_t{0}) != clone::kVersion)
      return Status(StatusCode::kNeedsNewer, "the daemon of the mount is of another version");
    SILTFS_RETURN_IF_ERROR(session.stream->WriteAll(clone::EncodeWanted(places.wanted)));
    {
      const MutexLock lock(mutex_);
      stream_ = session.stream.get();
      if (interrupted_) stream_->FinishWriting().IgnoreError("the daemon has ended the clone");
    }
    auto result = ReadResult(*session.stream);
    const MutexLock lock(mutex_);
    stream_ = nullptr;
    return result;
  }

 private:
  Result<Json> ReadResult(LocalStream& stream) {
    while (true) {
      const auto line = stream.ReadLine(control::kMaxResponseBytes);
      // While the daemon removes what it has written, it sends no progress. Its end ends the
      // stream.
      if (line.status().Is(StatusCode::kInterrupted)) continue;
      SILTFS_RETURN_IF_ERROR(line.status());
      if (!*line) return Status(StatusCode::kAborted, "the daemon of the mount has ended");
      const auto totals = clone::DecodeProgress(**line);
      if (!totals) return control::DecodeResponse(**line);
      files_ = totals->files;
    }
  }

  std::atomic<uint64_t> files_ = 0;
  Mutex mutex_;
  LocalStream* stream_ SILTFS_GUARDED_BY(mutex_) = nullptr;
  bool interrupted_ SILTFS_GUARDED_BY(mutex_) = false;
};

ExitCode RunClone(const CloneArguments& arguments, Surroundings& surroundings) {
  const auto command = LongCommand::Begin(
      surroundings, {.command = "clone", .subject = arguments.target, .quiet = arguments.quiet});
  if (!command.ok()) return Fail(surroundings, command.status());
  const auto begin = std::chrono::steady_clock::now();
  const auto places = Resolve(arguments);
  if (!places.ok()) {
    (*command)->End();
    return Fail(surroundings, places.status());
  }
  Cloner cloner;
  (*command)->OnInterruption([&cloner] { cloner.Interrupt(); });
  (*command)->Observe([&cloner] { return WorkProgress{"files", cloner.files(), 0}; });
  const Result<Json> outcome = cloner.Run(*places, **command);
  (*command)->OnInterruption({});
  (*command)->End();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  if (!outcome.ok()) {
    Status failure = ExplainInterruption(outcome.status(), "nothing was copied");
    if (failure.path().empty()) failure = std::move(failure).At(arguments.target);
    return Fail(surroundings, failure);
  }
  Json document = *outcome;
  document["store"] = places->address.store;
  document["seconds"] = seconds.count();
  if (arguments.json) {
    PrintJson(surroundings, document);
  } else {
    const auto number = [&](const char* key) { return document.value(key, uint64_t{0}); };
    surroundings.out << fmt::format("{} files and {} directories with {}, in {:.1f} s\n",
                                    number("files"), number("directories"),
                                    FormatSize(number("logical_bytes")), seconds.count())
                     << std::flush;
  }
  return ExitCode::kDone;
}

}  // namespace

std::function<ExitCode()> ConfigureClone(CLI::App& app, Surroundings& surroundings) {
  auto arguments = std::make_shared<CloneArguments>();
  app.add_option("SRC", arguments->source, "A file or a directory in a mounted store")->required();
  app.add_option(
         "DST", arguments->target,
         "The clone, in the same mounted store. It must not exist; its directory must exist")
      ->required();
  app.add_flag("--json", arguments->json, "Print one JSON document");
  app.add_flag("--quiet", arguments->quiet, "Show no progress");
  return [arguments, &surroundings] { return RunClone(*arguments, surroundings); };
}

}  // namespace siltfs
