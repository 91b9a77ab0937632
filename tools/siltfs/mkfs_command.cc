// siltfs mkfs
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "fs/bucket/store_bucket.h"
#include "fs/open/make_store.h"
#include "fs/open/store_layout.h"
#include "index/engines.h"
#include "store/env/mountpoint.h"
#include "store/env/posix_env.h"
#include "store/env/process.h"
#include "store/env/resources.h"
#include "tools/siltfs/command.h"
#include "tools/siltfs/index_options.h"
#include "tools/siltfs/size_option.h"
#include "tools/siltfs/small_disk.h"
#include "tools/siltfs/store_bucket_options.h"
#include "tools/siltfs/store_holder.h"
#include "tools/siltfs/store_options.h"
#include "tools/siltfs/store_place.h"

namespace siltfs {
namespace {

// The values on the command line.
struct MkfsArguments {
  std::string store;
  ChunkSizeOptions chunk;
  std::optional<std::string> compression;
  std::optional<std::string> delta;
  std::optional<std::string> index_engine;
  std::optional<std::string> index_memory;
  std::vector<std::string> index_options;
  std::optional<std::string> expected_chunks;
  std::optional<std::string> label;
  std::optional<std::string> root_owner;
  BucketArguments bucket;
};

Status Wrong(std::string cause) { return {StatusCode::kInvalidArgument, std::move(cause)}; }

Result<bool> ParseSwitch(std::string_view option, std::string_view text) {
  if (text == "on" || text == "off") return text == "on";
  return Wrong(fmt::format("{}: \"{}\" is neither on nor off", option, text));
}

// Returns the names and the remarks of all engines, for --help.
std::string DescribeEngines() {
  std::string text;
  for (const IndexEngineRow* row : IndexEngines()) {
    text += fmt::format("{}{}{}{}", text.empty() ? "" : ", or ", row->name,
                        row->remark.empty() ? "" : ", ", row->remark);
  }
  return text;
}

uint64_t LeastIndexMemory(const MakeStoreOptions& options) {
  const auto plan = FindIndexEngine(options.index_engine)
                        ->plan({.entries = 1, .parameters = options.index_parameters});
  return plan.ok() ? plan->least_memory_bytes : 0;
}

// Parses the number of a user or a group. The greatest number is invalid, because chown(2) takes it
// as "unchanged".
std::optional<uint32_t> ParseId(std::string_view text) {
  uint32_t id = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || rest != text.data() + text.size() || id == UINT32_MAX)
    return std::nullopt;
  return id;
}

Result<FileOwner> ParseOwner(std::string_view text) {
  const size_t colon = text.find(':');
  const auto uid = ParseId(text.substr(0, colon));
  const auto gid = colon == std::string_view::npos ? std::nullopt : ParseId(text.substr(colon + 1));
  if (uid && gid) return FileOwner{.uid = *uid, .gid = *gid};
  return Wrong(
      fmt::format("--root-owner: \"{}\" is not UID:GID, a user's and a group's number, as in "
                  "1000:1000",
                  text));
}

Result<MakeStoreOptions> ToOptions(const MkfsArguments& arguments) {
  MakeStoreOptions options;
  SILTFS_ASSIGN_OR_RETURN(options.path, AbsolutePath(arguments.store));
  SILTFS_ASSIGN_OR_RETURN(const ChunkSizes chunk,
                          ParseChunkSizes(arguments.chunk, {.min = options.chunk_min,
                                                            .avg = options.chunk_avg,
                                                            .max = options.chunk_max}));
  options.chunk_min = chunk.min;
  options.chunk_avg = chunk.avg;
  options.chunk_max = chunk.max;
  if (arguments.compression) {
    SILTFS_ASSIGN_OR_RETURN(options.compression_level, ParseCompression(*arguments.compression));
  }
  if (arguments.delta) {
    SILTFS_ASSIGN_OR_RETURN(options.deltas, ParseSwitch("--delta", *arguments.delta));
  }
  if (options.deltas && options.compression_level == 0) {
    return Wrong("--delta: deltas need compression; leave --compression none out");
  }
  if (arguments.index_engine) {
    SILTFS_ASSIGN_OR_RETURN(const IndexEngineRow* const row, FindEngine(*arguments.index_engine));
    options.index_engine = row->number;
  }
  SILTFS_ASSIGN_OR_RETURN(options.index_parameters,
                          ParseIndexOptions(arguments.index_options, options.index_engine));
  if (arguments.index_memory) {
    SILTFS_ASSIGN_OR_RETURN(options.index_memory,
                            ParseSizeOption("--index-memory", *arguments.index_memory));
  }
  if (arguments.expected_chunks) {
    SILTFS_ASSIGN_OR_RETURN(options.index_parameters,
                            ChooseIndexParameters(*arguments.expected_chunks, options));
  }
  if (arguments.label) {
    SILTFS_ASSIGN_OR_RETURN(options.label, ParseLabel(*arguments.label));
  }
  options.root_owner = RealOwner();
  if (arguments.root_owner) {
    SILTFS_ASSIGN_OR_RETURN(options.root_owner, ParseOwner(*arguments.root_owner));
  }
  return options;
}

// Returns a warning if the superuser runs mkfs, but another user owns `store` or its parent
// directory. That user could replace the store or parts of it.
std::optional<std::string> WarnOfOwner(const std::string& store) {
  if (CurrentUserId() != 0) return std::nullopt;
  const std::string parent = store.substr(0, std::max<size_t>(store.rfind('/'), 1));
  for (const std::string& directory : {store, parent}) {
    const auto owner = OwnerOf(directory);
    if (!owner.ok() || owner->uid == 0) continue;
    return fmt::format("{}: the directory belongs to user {}; this user can replace the {}",
                       directory, owner->uid, directory == store ? "store's files" : "whole store");
  }
  return std::nullopt;
}

// Returns kInUse if a store that was made at this path is still mounted, even if its directory has
// been moved or removed. The mount table lists that store under this path until it is unmounted. So
// commands for a new store at this path would reach the daemon of the old store.
Status CheckNotMounted(const std::string& store) {
  const control::DaemonAddress address = AddressOfStore(store);
  if (address.mountpoint.empty()) return {};
  const auto daemon = control::Identify(address);
  const std::string process =
      daemon.ok() && daemon->pid > 0 ? fmt::format(" by process {}", daemon->pid) : "";
  return Status(StatusCode::kInUse, fmt::format("is mounted on {}{}; use siltfs umount {}",
                                                address.mountpoint, process, address.mountpoint))
      .At(store);
}

// Makes the store and restricts its directory to the owner. If the directory existed before, all
// users may have been able to read it.
Status Make(Env& env, const MakeStoreOptions& options) {
  SILTFS_RETURN_IF_ERROR(CheckNotMounted(options.path));
  SILTFS_RETURN_IF_ERROR(CheckDiskSize(env, options.path));
  SILTFS_RETURN_IF_ERROR(MakeStore(env, options));
  return KeepToOwner(options.path);
}

// The same for a store with a bucket. The bucket is claimed last, so that a bucket that cannot be
// used leaves no store.
Status MakeInBucket(Env& env, MakeStoreOptions options, const BucketConfig& bucket) {
  SILTFS_ASSIGN_OR_RETURN(const auto objects, OpenObjects(env, bucket));
  SILTFS_RETURN_IF_ERROR(CheckNoOuterStore(env, bucket));
  bool claimed = false;
  options.make_segment_place = [&](const StoreUuid& uuid) -> Status {
    SILTFS_RETURN_IF_ERROR(env.CreateDirectory(BucketCachePath(options.path)));
    SILTFS_RETURN_IF_ERROR(WriteBucketConfig(env, options.path, bucket));
    SILTFS_RETURN_IF_ERROR(ClaimBucket(*objects, uuid));
    claimed = true;
    return Status::Ok();
  };
  Status made = Make(env, options);
  if (!made.ok() && claimed) {
    const Status released = ReleaseBucket(*objects);
    if (!released.ok()) {
      return Status(made.code(),
                    fmt::format("{}; the object \"siltfs\" of {} could not be removed "
                                "({}), so remove it by hand",
                                made.ToString(), objects->name(), released.ToString()));
    }
  }
  return made;
}

Status MakeAnywhere(Env& env, const MakeStoreOptions& options, const BucketArguments& arguments) {
  if (arguments.empty()) return Make(env, options);
  SILTFS_ASSIGN_OR_RETURN(const BucketConfig bucket, ApplyBucketOptions(arguments, {}));
  return MakeInBucket(env, options, bucket);
}

}  // namespace

std::function<ExitCode()> ConfigureMkfs(CLI::App& app, Surroundings& surroundings) {
  auto arguments = std::make_shared<MkfsArguments>();
  const MakeStoreOptions defaults;
  app.add_option("STORE", arguments->store,
                 "Directory to make the store in; it must be empty if it exists")
      ->required();
  app.add_option("--chunk-avg", arguments->chunk.avg, "Mean chunk size (8K)")->type_name("SIZE");
  app.add_option("--chunk-min", arguments->chunk.min, "Smallest chunk (a quarter of the mean)")
      ->type_name("SIZE");
  app.add_option("--chunk-max", arguments->chunk.max, "Largest chunk (eight times the mean)")
      ->type_name("SIZE");
  app.add_option("--compression", arguments->compression,
                 fmt::format("zstd:N with N from {} to {}, or none (zstd:{})", kMinCompressionLevel,
                             kMaxCompressionLevel, defaults.compression_level))
      ->type_name("HOW");
  app.add_option("--delta", arguments->delta,
                 "on or off: whether recompression stores chunks that resemble others as deltas "
                 "(off)")
      ->type_name("on|off");
  app.add_option("--index-engine", arguments->index_engine,
                 fmt::format("{} ({})", DescribeEngines(), IndexEngines().front()->name))
      ->type_name("ENGINE");
  app.add_option(
         "--index-memory", arguments->index_memory,
         fmt::format("Memory for the index and its filter ({}M)", defaults.index_memory >> 20))
      ->type_name("SIZE");
  app.add_option("--index-option", arguments->index_options,
                 "A parameter of the index engine that differs from its default; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  app.add_option("--expected-chunks", arguments->expected_chunks,
                 "Choose the index's parameters for this number of chunks, within --index-memory; "
                 "accepts the suffixes of sizes")
      ->type_name("N");
  app.add_option("--label", arguments->label,
                 fmt::format("Name of the store, by which it can be mounted; at most {} bytes",
                             kMostLabelBytes))
      ->type_name("LABEL");
  app.add_option("--root-owner", arguments->root_owner,
                 "Owner of the file system's root directory (the user and group that run mkfs)")
      ->type_name("UID:GID");
  AddBucketOptions(app, arguments->bucket);
  return [arguments, &surroundings] {
    const Result<MakeStoreOptions> options = ToOptions(*arguments);
    if (options.ok()) {
      const auto warning = WarnOfIndexMemory("--index-memory", options->index_memory,
                                             PhysicalMemoryBytes(), LeastIndexMemory(*options));
      if (warning) Warn(surroundings, *warning);
    }
    const Status made =
        options.ok() ? ExplainLock(MakeAnywhere(surroundings.env, *options, arguments->bucket),
                                   options->path)
                     : options.status();
    if (made.ok()) {
      if (const auto warning = WarnOfOwner(options->path)) Warn(surroundings, *warning);
      if (const auto warning = WarnOfSmallDisk(surroundings.env, options->path))
        Warn(surroundings, *warning);
      return ExitCode::kDone;
    }
    // Here kNotFound means that a parent directory is missing, not a store.
    const ExitCode code = made.Is(StatusCode::kNotFound) ? ExitCode::kFailed : ExitCodeOf(made);
    return Fail(surroundings, code, made.ToString());
  };
}

}  // namespace siltfs
