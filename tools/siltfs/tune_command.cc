// siltfs tune
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "fs/bucket/store_bucket.h"
#include "fs/open/store_index.h"
#include "fs/open/store_layout.h"
#include "fs/open/tune_store.h"
#include "store/base/size_text.h"
#include "store/env/resources.h"
#include "tools/siltfs/command.h"
#include "tools/siltfs/json_output.h"
#include "tools/siltfs/printable_text.h"
#include "tools/siltfs/size_option.h"
#include "tools/siltfs/store_bucket_options.h"
#include "tools/siltfs/store_holder.h"
#include "tools/siltfs/store_options.h"
#include "tools/siltfs/store_place.h"
#include "tools/siltfs/tune_report.h"

namespace siltfs {
namespace {

struct TuneArguments {
  std::string place;
  std::optional<std::string> compression;
  std::optional<std::string> index_memory;
  std::optional<std::string> label;
  std::optional<std::string> uuid;
  BucketArguments bucket;
  bool json = false;
};

// An option of mkfs that cannot be changed later.
struct FixedOption {
  const char* name;
  const char* why;
};

constexpr const char* kCopyFiles =
    "make another store with this option, and copy the files into it with siltfs import";
constexpr const char* kChunks =
    "the cut points of all stored files depend on it, and new files would share no data with them";
constexpr const char* kIndex = "the index on flash has the form that the engine has given it";

constexpr std::array kFixed = {
    FixedOption{"--chunk-min", kChunks},
    FixedOption{"--chunk-avg", kChunks},
    FixedOption{"--chunk-max", kChunks},
    FixedOption{"--delta", "garbage collection has to keep the bases of deltas from the beginning"},
    FixedOption{"--index-engine", kIndex},
    FixedOption{"--index-option", kIndex},
    FixedOption{"--expected-chunks", kIndex},
};

Status Wrong(std::string cause) { return {StatusCode::kInvalidArgument, std::move(cause)}; }

// CheckUnchangeable finds an option of mkfs that was given, but cannot be changed.
Status CheckUnchangeable(const CLI::App& app) {
  for (const FixedOption& option : kFixed) {
    if (app.count(option.name) > 0) {
      return Wrong(fmt::format("{} cannot be changed after mkfs: {}; {}", option.name, option.why,
                               kCopyFiles));
    }
  }
  if (app.count("--root-owner") > 0) {
    return Wrong(
        "--root-owner cannot be changed here; mount the store and use chown(1) on its root");
  }
  return Status::Ok();
}

Result<UuidChoice> ParseUuid(const std::string& text) {
  if (text == "random") return UuidChoice{.kind = UuidChoice::Kind::kRandom, .given = {}};
  if (text == "original") return UuidChoice{.kind = UuidChoice::Kind::kOriginal, .given = {}};
  const auto uuid = StoreUuid::FromText(text);
  if (uuid) return UuidChoice{.kind = UuidChoice::Kind::kGiven, .given = *uuid};
  return Wrong(
      fmt::format("--uuid: \"{}\" is neither random, nor original, nor a UUID such as "
                  "01234567-89ab-cdef-0123-456789abcdef",
                  text));
}

Result<StoreChanges> ToChanges(const TuneArguments& arguments) {
  StoreChanges changes;
  if (arguments.compression) {
    SILTFS_ASSIGN_OR_RETURN(changes.compression_level, ParseCompression(*arguments.compression));
  }
  if (arguments.index_memory) {
    SILTFS_ASSIGN_OR_RETURN(changes.index_memory,
                            ParseSizeOption("--index-memory", *arguments.index_memory));
  }
  if (arguments.label) {
    SILTFS_ASSIGN_OR_RETURN(changes.label, ParseLabel(*arguments.label));
  }
  if (arguments.uuid) {
    SILTFS_ASSIGN_OR_RETURN(changes.uuid, ParseUuid(*arguments.uuid));
  }
  return changes;
}

// The document of --json.
Result<nlohmann::json> Document(const std::string& store, const Superblock& superblock, Env& env) {
  nlohmann::json document = ParametersToJson(store, superblock);
  if (!superblock.in_bucket()) return document;
  SILTFS_ASSIGN_OR_RETURN(const auto bucket, ReadBucketConfig(env, store));
  if (!bucket) return document;
  const auto or_null = [](const std::string& text) {
    return text.empty() ? nlohmann::json() : nlohmann::json(text);
  };
  document["bucket"] = {
      {"address", bucket->address},          {"endpoint", or_null(bucket->endpoint)},
      {"region", or_null(bucket->region)},   {"credentials", or_null(bucket->credentials)},
      {"ca_file", or_null(bucket->ca_file)}, {"cache_limit_bytes", bucket->cache_bytes}};
  return document;
}

ExitCode Print(const std::string& store, const Superblock& superblock, Surroundings& surroundings) {
  const auto document = Document(store, superblock, surroundings.env);
  if (!document.ok()) return Fail(surroundings, document.status());
  PrintJson(surroundings, *document);
  return ExitCode::kDone;
}

ExitCode Show(const std::string& store, bool json, Surroundings& surroundings) {
  const auto state = ReadSuperblock(surroundings.env, store, StoreAccess::kReadOnly);
  if (!state.ok()) return Fail(surroundings, state.status());
  if (json) return Print(store, state->superblock, surroundings);
  surroundings.out << FormatParameters(store, state->superblock);
  return ExitCode::kDone;
}

ExitCode Change(const std::string& store, const StoreChanges& changes, bool json,
                Surroundings& surroundings) {
  const auto tuned =
      OpenWhenFree(store, [&] { return TuneStore(surroundings.env, store, changes); });
  if (!tuned.ok()) {
    Status why = ExplainLock(tuned.status(), store);
    return Fail(surroundings, ExplainReadOnlyMedium(std::move(why), store, "nothing was changed"));
  }
  if (changes.index_memory) {
    const auto warning =
        WarnOfIndexMemory("--index-memory", *changes.index_memory, PhysicalMemoryBytes(),
                          LeastIndexMemory(surroundings.env, store));
    if (warning) Warn(surroundings, *warning);
  }
  if (json) return Print(store, tuned->after, surroundings);
  const std::string changed = FormatChanges(*tuned);
  surroundings.out << (changed.empty() ? "nothing to change\n" : changed);
  return ExitCode::kDone;
}

// Writes the bucket file. It may be missing or damaged: --bucket then makes a new one.
Result<BucketConfig> WriteBucket(const std::string& store, const BucketArguments& arguments,
                                 Env& env) {
  SILTFS_ASSIGN_OR_RETURN(const auto lock, env.LockFile(LockPath(store)));
  SILTFS_ASSIGN_OR_RETURN(const SuperblockState state,
                          ReadSuperblock(env, store, StoreAccess::kReadWrite));
  if (!state.superblock.in_bucket()) {
    return Wrong(
        fmt::format("the segments of {} are in its directory; move them to a bucket with "
                    "siltfs bucket push",
                    store));
  }
  auto before = ReadBucketConfig(env, store);
  if (!before.ok() && !arguments.bucket) return std::move(before).status();
  BucketConfig config;
  if (before.ok() && *before) config = **before;
  SILTFS_ASSIGN_OR_RETURN(config, ApplyBucketOptions(arguments, std::move(config)));
  SILTFS_RETURN_IF_ERROR(CheckBucketCache(env, store));
  SILTFS_RETURN_IF_ERROR(WriteBucketConfig(env, store, config));
  return config;
}

ExitCode ChangeBucket(const std::string& store, const TuneArguments& arguments,
                      Surroundings& surroundings) {
  const auto written =
      OpenWhenFree(store, [&] { return WriteBucket(store, arguments.bucket, surroundings.env); });
  if (written.ok()) {
    // The document of --json is printed once, after all changes.
    if (!arguments.json) {
      surroundings.out << fmt::format("the segments are in {}, with a cache of {}\n",
                                      Printable(written->address),
                                      FormatSize(written->cache_bytes));
    }
    return ExitCode::kDone;
  }
  return Fail(surroundings, ExplainReadOnlyMedium(ExplainLock(written.status(), store), store,
                                                  "nothing was changed"));
}

ExitCode RunTune(const CLI::App& app, const TuneArguments& arguments, Surroundings& surroundings) {
  const Status changeable = CheckUnchangeable(app);
  if (!changeable.ok()) return Fail(surroundings, changeable);
  const auto changes = ToChanges(arguments);
  if (!changes.ok()) return Fail(surroundings, changes.status());
  const auto store = StoreAt(arguments.place);
  if (!store.ok()) return Fail(surroundings, store.status());
  if (!arguments.bucket.empty()) {
    const ExitCode changed = ChangeBucket(*store, arguments, surroundings);
    const bool shown = changes->empty() && !arguments.json;
    if (changed != ExitCode::kDone || shown) return changed;
  }
  if (changes->empty()) return Show(*store, arguments.json, surroundings);
  return Change(*store, *changes, arguments.json, surroundings);
}

}  // namespace

std::function<ExitCode()> ConfigureTune(CLI::App& app, Surroundings& surroundings) {
  auto arguments = std::make_shared<TuneArguments>();
  app.add_option("STORE", arguments->place, "The store's directory, or where it is mounted")
      ->required();
  app.add_option("--compression", arguments->compression,
                 fmt::format("zstd:N with N from {} to {}, or none; for data that is written or "
                             "recompressed from now on",
                             kMinCompressionLevel, kMaxCompressionLevel))
      ->type_name("HOW");
  app.add_option("--index-memory", arguments->index_memory, "Memory for the index and its filter")
      ->type_name("SIZE");
  app.add_option("--label", arguments->label, "Name of the store; an empty one removes the name")
      ->type_name("LABEL");
  app.add_option("--uuid", arguments->uuid,
                 "A UUID, or random for a new one, or original for the one that mkfs has drawn")
      ->type_name("UUID");
  AddBucketOptions(app, arguments->bucket);
  app.add_flag("--json", arguments->json, "Print one JSON document instead of text");
  // These have no group, so --help does not list them. They are declared to explain why they are
  // refused.
  auto ignored = std::make_shared<std::vector<std::string>>();
  for (const FixedOption& option : kFixed) app.add_option(option.name, *ignored)->group("");
  app.add_option("--root-owner", *ignored)->group("");
  return
      [&app, arguments, ignored, &surroundings] { return RunTune(app, *arguments, surroundings); };
}

}  // namespace siltfs
