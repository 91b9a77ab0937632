// siltfs bucket pull
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <utility>

#include "fs/bucket/store_bucket.h"
#include "fs/bucket/store_conversion.h"
#include "fs/open/segment_check.h"
#include "store/base/progress_meter.h"
#include "store/base/size_text.h"
#include "store/env/process.h"
#include "store/superblock/superblock.h"
#include "tools/siltfs/bucket_command.h"
#include "tools/siltfs/json_output.h"
#include "tools/siltfs/long_command.h"
#include "tools/siltfs/maintenance_run.h"
#include "tools/siltfs/printable_text.h"
#include "tools/siltfs/store_holder.h"
#include "tools/siltfs/store_place.h"
#include "tools/siltfs/store_with_bucket.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

constexpr const char* kAfterwards =
    "the store still has its bucket and can be mounted as before, and the next siltfs bucket pull "
    "goes on with the rest";

struct BucketPullArguments {
  std::string store;
  bool json = false;
  bool quiet = false;
};

// Opens the store as a mount does, so that all segments are as metadata says.
Status Recover(Env& env, const std::string& store, LongCommand& command) {
  FileSystemOptions options;
  options.store = store;
  options.keep_reserve = true;
  SILTFS_ASSIGN_OR_RETURN(
      const auto bucket,
      OpenBucketOf(env, options, {.interrupted = [&command] { return command.interrupted(); }}));
  auto opened = OpenWithProgress(env, std::move(options), command);
  Status status = opened.status();
  if (bucket != nullptr) status = bucket->EndOpening(std::move(status));
  SILTFS_RETURN_IF_ERROR(status);
  return (*opened)->Close();
}

Result<Json> Pull(Env& env, const std::string& store, LongCommand& command) {
  SILTFS_ASSIGN_OR_RETURN(const SuperblockState state, ReadSuperblock(env, store));
  SILTFS_ASSIGN_OR_RETURN(const auto config, ReadBucketConfig(env, store));
  Conversion conversion;
  if (!state.superblock.in_bucket()) {
    // Removes the file that says to which bucket a conversion was begun.
    SILTFS_RETURN_IF_ERROR(ForgetBucket(env, store));
  } else if (!config) {
    return CheckPlaceIsKnown(state.superblock, nullptr, store);
  } else {
    SILTFS_ASSIGN_OR_RETURN(const auto objects, OpenObjects(env, *config, kConversionDeadline));
    if (!state.superblock.clean) SILTFS_RETURN_IF_ERROR(Recover(env, store, command));
    ProgressMeter meter;
    command.Observe([&meter] { return meter.Now(); });
    auto converted =
        ConvertToDirectory(env, *objects,
                           {.store = store,
                            .on_progress =
                                [&meter](uint64_t done, uint64_t total) {
                                  meter.Put({"MiB", done >> 20, total >> 20});
                                },
                            .interrupted = [&command] { return command.interrupted(); }});
    command.Observe({});
    if (!converted.ok()) return std::move(converted).status();
    conversion = *converted;
  }
  return Json{{"store", store},
              {"bucket", config ? Json(config->address) : Json()},
              {"converted", conversion.converted},
              {"segments", conversion.segments},
              {"bytes", conversion.bytes},
              {"downloaded_segments", conversion.moved_segments},
              {"downloaded_bytes", conversion.moved_bytes}};
}

std::string Format(const Json& pulled) {
  const std::string store = Printable(pulled.at("store").get<std::string>());
  const std::string bucket =
      pulled.at("bucket").is_string() ? Printable(pulled.at("bucket").get<std::string>()) : "";
  if (!pulled.at("converted").get<bool>()) {
    return fmt::format("{}: its segments are in its directory{}\n", store,
                       bucket.empty() ? ""
                                      : fmt::format("; the conversion to {} is given up, and what "
                                                    "it has uploaded is still there",
                                                    bucket));
  }
  return fmt::format(
      "{}: its directory has all {} segments ({}), {} of them downloaded now; {} stays as it is, "
      "and can still be mounted elsewhere, as another copy of the store\n",
      store, pulled.at("segments").get<uint64_t>(), FormatSize(pulled.at("bytes").get<uint64_t>()),
      pulled.at("downloaded_segments").get<uint64_t>(), bucket);
}

ExitCode RunBucketPull(const BucketPullArguments& arguments, Surroundings& surroundings) {
  const auto command = LongCommand::Begin(
      surroundings,
      {.command = "bucket pull", .subject = arguments.store, .quiet = arguments.quiet});
  if (!command.ok()) return Fail(surroundings, command.status());
  const auto store = StoreAt(arguments.store);
  if (!store.ok()) return Fail(surroundings, store.status());
  PrepareForStore();
  Result<Json> pulled =
      OpenWhenFree(*store, [&] { return Pull(surroundings.env, *store, **command); });
  if (!pulled.ok()) {
    pulled =
        ExplainInterruption(ExplainReadOnlyMedium(ExplainLock(std::move(pulled).status(), *store),
                                                  *store, "nothing was changed"),
                            kAfterwards);
  }
  return EndRun(surroundings, **command, pulled, arguments.json, Format);
}

}  // namespace

std::function<ExitCode()> ConfigureBucketPull(CLI::App& app, Surroundings& surroundings) {
  auto arguments = std::make_shared<BucketPullArguments>();
  app.add_option("STORE", arguments->store, "The directory of a store that is not mounted")
      ->required();
  app.add_flag("--json", arguments->json, "Print one JSON document instead of a sentence");
  app.add_flag("--quiet", arguments->quiet, "Show no progress");
  return [arguments, &surroundings] { return RunBucketPull(*arguments, surroundings); };
}

}  // namespace siltfs
