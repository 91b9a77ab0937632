// siltfs bucket push
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "fs/bucket/store_bucket.h"
#include "fs/bucket/store_conversion.h"
#include "fs/control/client.h"
#include "store/base/progress_meter.h"
#include "store/base/size_text.h"
#include "store/env/mountpoint.h"
#include "store/env/process.h"
#include "store/superblock/superblock.h"
#include "tools/siltfs/bucket_command.h"
#include "tools/siltfs/json_output.h"
#include "tools/siltfs/long_command.h"
#include "tools/siltfs/maintenance_run.h"
#include "tools/siltfs/printable_text.h"
#include "tools/siltfs/store_bucket_options.h"
#include "tools/siltfs/store_holder.h"
#include "tools/siltfs/store_place.h"
#include "tools/siltfs/store_with_bucket.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

constexpr const char* kAfterwards =
    "the store can be mounted as before, and the next siltfs bucket push goes on with the rest";

struct BucketPushArguments {
  std::string place;
  BucketArguments bucket;
  bool json = false;
  bool quiet = false;
};

WorkProgress UploadProgress(uint64_t uploaded, uint64_t waiting) {
  return {"uploads", uploaded, uploaded + waiting};
}

Json ToJson(const std::string& store, const std::string& address, const Conversion& conversion,
            uint64_t segments, uint64_t uploaded_segments, uint64_t uploaded_bytes) {
  return {{"store", store},
          {"bucket", address},
          {"converted", conversion.converted},
          {"segments", segments},
          {"uploaded_segments", conversion.moved_segments + uploaded_segments},
          {"uploaded_bytes", conversion.moved_bytes + uploaded_bytes}};
}

// Asks the daemon of a mounted store for the same as a sync, but to the bucket.
Result<Json> PushMounted(const control::DaemonAddress& mounted,
                         const BucketPushArguments& arguments, LongCommand& command) {
  if (!arguments.bucket.empty()) {
    return Status(StatusCode::kInvalidArgument,
                  "is mounted: the options of a bucket are for a store that is not mounted")
        .At(mounted.store);
  }
  SILTFS_ASSIGN_OR_RETURN(const control::DaemonAddress live, LiveMountOf(mounted));
  if (!live.mountpoint.empty()) SILTFS_RETURN_IF_ERROR(SendWrites(live.mountpoint));
  command.Observe([live]() -> WorkProgress {
    const auto stat = control::Ask(live, "stat");
    if (!stat.ok()) {
      stat.status().IgnoreError("the command itself reports a daemon that does not answer");
      return {};
    }
    const auto bucket = stat->find("bucket");
    if (bucket == stat->end() || !bucket->is_object()) return {};
    return UploadProgress(bucket->value("uploaded_segments", uint64_t{0}),
                          bucket->value("waiting_segments", uint64_t{0}));
  });
  auto pushed = control::Ask(
      live, "bucket push",
      command.WhileItRuns("its daemon goes on uploading", std::chrono::milliseconds(0)));
  command.Observe({});
  if (!pushed.ok()) return ExplainInterruption(std::move(pushed).status(), kAfterwards);
  return ToJson(mounted.store, pushed->value("address", ""), {},
                pushed->value("segments", uint64_t{0}),
                pushed->value("uploaded_segments", uint64_t{0}),
                pushed->value("uploaded_bytes", uint64_t{0}));
}

// Lets the mount's recovery run, after which all segments are as metadata says.
Status Recover(Env& env, const std::string& store, LongCommand& command) {
  FileSystemOptions options;
  options.store = store;
  options.keep_reserve = true;
  SILTFS_ASSIGN_OR_RETURN(const auto file_system,
                          OpenWithProgress(env, std::move(options), command));
  return file_system->Close();
}

Result<Conversion> Convert(Env& env, const std::string& store, const BucketPushArguments& arguments,
                           LongCommand& command) {
  SILTFS_ASSIGN_OR_RETURN(const auto begun, ReadBucketConfig(env, store));
  if (!begun && !arguments.bucket.bucket) {
    return Status(StatusCode::kInvalidArgument,
                  "its segments are in its directory; name the bucket that they are to go to with "
                  "--bucket s3://NAME/PREFIX")
        .At(store);
  }
  SILTFS_ASSIGN_OR_RETURN(const BucketConfig config,
                          ApplyBucketOptions(arguments.bucket, begun.value_or(BucketConfig())));
  SILTFS_RETURN_IF_ERROR(CheckNoOuterStore(env, config));
  SILTFS_ASSIGN_OR_RETURN(const auto objects, OpenObjects(env, config, kConversionDeadline));
  SILTFS_ASSIGN_OR_RETURN(const SuperblockState state, ReadSuperblock(env, store));
  if (!state.superblock.clean) SILTFS_RETURN_IF_ERROR(Recover(env, store, command));
  ProgressMeter meter;
  command.Observe([&meter] { return meter.Now(); });
  auto converted = ConvertToBucket(env, *objects, config,
                                   {.store = store,
                                    .on_progress =
                                        [&meter](uint64_t done, uint64_t total) {
                                          meter.Put({"MiB", done >> 20, total >> 20});
                                        },
                                    .interrupted = [&command] { return command.interrupted(); }});
  command.Observe({});
  return converted;
}

// Opens the store as a mount does, and waits until the bucket has everything.
Result<Json> Ship(Env& env, const std::string& store, const Conversion& conversion,
                  LongCommand& command) {
  FileSystemOptions options;
  options.store = store;
  options.keep_reserve = true;
  SILTFS_ASSIGN_OR_RETURN(
      const auto bucket,
      OpenBucketOf(env, options, {.interrupted = [&command] { return command.interrupted(); }}));
  if (bucket == nullptr) {
    return Status(StatusCode::kAborted, "another process has changed the store; try again")
        .At(store);
  }
  auto opened = OpenWithProgress(env, std::move(options), command);
  SILTFS_RETURN_IF_ERROR(bucket->EndOpening(opened.status()));
  command.Observe([&bucket] {
    const UploadStatus uploads = bucket->Stats().segments.uploads;
    return UploadProgress(uploads.uploaded, uploads.waiting);
  });
  Status awaited = bucket->AwaitAll([&command] { return command.Check(); });
  command.Observe({});
  Status closed = (*opened)->Close();
  if (!awaited.ok()) {
    closed.IgnoreError("the first failure is reported");
    return awaited;
  }
  SILTFS_RETURN_IF_ERROR(closed);
  const StoreBucketStats stats = bucket->Stats();
  if (stats.lag && stats.lag->commits > 0) {
    return Status(StatusCode::kIoError,
                  fmt::format("the bucket does not have the last {} commits yet; run the command "
                              "again{}{}",
                              stats.lag->commits, stats.lag->last_error.empty() ? "" : ": ",
                              stats.lag->last_error))
        .At(stats.address);
  }
  return ToJson(store, stats.address, conversion, stats.segments.segments,
                stats.segments.uploads.uploaded, stats.segments.uploads.uploaded_bytes);
}

Result<Json> PushUnmounted(Env& env, const std::string& store, const BucketPushArguments& arguments,
                           LongCommand& command) {
  SILTFS_ASSIGN_OR_RETURN(const SuperblockState state, ReadSuperblock(env, store));
  Conversion conversion;
  if (!state.superblock.in_bucket()) {
    SILTFS_ASSIGN_OR_RETURN(conversion, Convert(env, store, arguments, command));
  } else if (!arguments.bucket.empty()) {
    return Status(StatusCode::kInvalidArgument,
                  "its segments are in a bucket already; change how it is reached with siltfs tune")
        .At(store);
  }
  return Ship(env, store, conversion, command);
}

Result<Json> Push(Env& env, const BucketPushArguments& arguments, LongCommand& command) {
  SILTFS_ASSIGN_OR_RETURN(const auto mounted, FindMount(arguments.place));
  if (mounted) return PushMounted(*mounted, arguments, command);
  SILTFS_ASSIGN_OR_RETURN(const std::string store, StoreAt(arguments.place));
  PrepareForStore();
  auto pushed = OpenWhenFree(store, [&] { return PushUnmounted(env, store, arguments, command); });
  if (pushed.ok()) return pushed;
  return ExplainInterruption(
      ExplainReadOnlyMedium(ExplainLock(std::move(pushed).status(), store, "siltfs bucket push"),
                            store, "nothing was changed"),
      kAfterwards);
}

std::string Format(const Json& pushed) {
  return fmt::format(
      "{}: {} has everything: {} segments, {} of them ({}) uploaded now{}\n",
      Printable(pushed.at("store").get<std::string>()),
      Printable(pushed.at("bucket").get<std::string>()), pushed.at("segments").get<uint64_t>(),
      pushed.at("uploaded_segments").get<uint64_t>(),
      FormatSize(pushed.at("uploaded_bytes").get<uint64_t>()),
      pushed.at("converted").get<bool>() ? "; from now on the store keeps its segments there" : "");
}

ExitCode RunBucketPush(const BucketPushArguments& arguments, Surroundings& surroundings) {
  const auto command = LongCommand::Begin(
      surroundings,
      {.command = "bucket push", .subject = arguments.place, .quiet = arguments.quiet});
  if (!command.ok()) return Fail(surroundings, command.status());
  const Result<Json> pushed = Push(surroundings.env, arguments, **command);
  return EndRun(surroundings, **command, pushed, arguments.json, Format);
}

}  // namespace

std::function<ExitCode()> ConfigureBucketPush(CLI::App& app, Surroundings& surroundings) {
  auto arguments = std::make_shared<BucketPushArguments>();
  app.add_option("STORE|MOUNTPOINT", arguments->place,
                 "Where the store is mounted, or its directory if it is not mounted")
      ->required();
  AddBucketOptions(app, arguments->bucket);
  app.add_flag("--json", arguments->json, "Print one JSON document instead of a sentence");
  app.add_flag("--quiet", arguments->quiet, "Show no progress");
  return [arguments, &surroundings] { return RunBucketPush(*arguments, surroundings); };
}

}  // namespace siltfs
