// siltfs index dump
#include <fmt/ostream.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <ostream>

#include "fs/bucket/store_bucket.h"
#include "fs/open/store_index.h"
#include "fs/open/store_layout.h"
#include "fs/open/stored_names.h"
#include "tools/siltfs/index_command.h"
#include "tools/siltfs/store_holder.h"
#include "tools/siltfs/store_place.h"

namespace siltfs {
namespace {

struct IndexDumpArguments {
  std::string place;
  bool names = false;
};

// `names` may be null.
Status Dump(ChunkIndex& index, StoredNames* names, std::ostream& out) {
  return index.ForEach([&](const OrderedEntry& entry) -> Status {
    const Location& at = entry.location;
    std::string name;
    if (names != nullptr) {
      SILTFS_ASSIGN_OR_RETURN(const auto found, names->NameAt(at));
      name = found ? fmt::format(",\"name\":\"{}\"", found->ToHex()) : ",\"name\":null";
    }
    fmt::print(out,
               "{{\"order\":\"{:016x}\",\"segment\":{},\"ordinal\":{},\"block_offset\":{}{}}}\n",
               entry.order, at.segment, at.ordinal, at.block_offset, name);
    return out.good() ? Status::Ok() : Status(StatusCode::kAborted, "the output cannot be written");
  });
}

ExitCode RunIndexDump(const IndexDumpArguments& arguments, Surroundings& surroundings) {
  const Result<std::string> store = StoreAt(arguments.place);
  if (!store.ok()) return Fail(surroundings, store.status());
  const Result<StoreIndex> opened =
      OpenWhenFree(*store, [&] { return OpenStoreIndexReadOnly(surroundings.env, *store); });
  if (!opened.ok()) return Fail(surroundings, ExplainLock(opened.status(), *store));
  if (opened->rebuild_interrupted) Warn(surroundings, InterruptedRebuild(IndexPath(*store)));
  const auto bucket = StoreBucket::Open(surroundings.env, *store, {});
  if (!bucket.ok()) return Fail(surroundings, bucket.status());
  std::unique_ptr<StoredNames> names;
  if (arguments.names) {
    auto stored = StoredNames::Open(surroundings.env, *store,
                                    *bucket == nullptr ? nullptr : &(*bucket)->segments());
    if (!stored.ok()) return Fail(surroundings, stored.status());
    names = std::move(*stored);
  }
  const Status dumped = Dump(*opened->index, names.get(), surroundings.out);
  if (!surroundings.out.good()) {
    dumped.IgnoreError("the caller reports the cause");
    return ExitCode::kFailed;
  }
  if (!dumped.ok()) return Fail(surroundings, dumped);
  const uint64_t damaged = opened->index->stats().damaged_pages;
  if (damaged == 0) return ExitCode::kDone;
  return Fail(
      surroundings,
      Status(StatusCode::kCorruption,
             fmt::format("{} pages of the index are damaged; their entries are left out", damaged))
          .At(*store));
}

}  // namespace

std::function<ExitCode()> ConfigureIndexDump(CLI::App& app, Surroundings& surroundings) {
  auto arguments = std::make_shared<IndexDumpArguments>();
  app.add_option("STORE", arguments->place, "The directory of a store that is not mounted")
      ->required();
  app.add_flag("--names", arguments->names,
               "Adds each chunk's name, which is read from its segment");
  app.add_flag("--json")->description("No effect: each entry is always one line of JSON");
  return [arguments, &surroundings] { return RunIndexDump(*arguments, surroundings); };
}

}  // namespace siltfs
