#include "tests/fs/core/recompression_store.h"

#include <fmt/format.h>

#include "fs/check/check_store.h"
#include "fs/open/make_store.h"
#include "fs/open/store_layout.h"
#include "fs/open/store_stats.h"
#include "fs/records/schema.h"
#include "fs/records/segment_record.h"
#include "fs/rocksdb/rocksdb_store.h"
#include "store/base/random.h"
#include "store/superblock/superblock.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/memory_segments.h"

namespace siltfs::testing {

Bytes RepetitiveBytes(uint64_t seed, size_t size) {
  constexpr size_t kLine = 96;
  constexpr size_t kLines = 300;
  static const Bytes kDictionary = RandomBytes(77, kLines * kLine);
  Random random(seed);
  Bytes bytes;
  while (bytes.size() < size) {
    const auto line = kDictionary.begin() + static_cast<ptrdiff_t>(random.Below(kLines) * kLine);
    bytes.insert(bytes.end(), line, line + kLine);
  }
  bytes.resize(size);
  return bytes;
}

RecompressionStore::RecompressionStore(Env& environment, std::string store_path,
                                       uint32_t segment_bytes, int compression_level)
    : env(environment), path(std::move(store_path)) {
  MakeStoreOptions options;
  options.path = path;
  options.index_memory = 4u << 20;
  options.compression_level = compression_level;
  ForgetSegments(env, path);
  REQUIRE_OK(MakeStore(env, options));
  auto state = ReadSuperblock(env, path);
  REQUIRE_OK(state);
  state->superblock.segment_bytes = segment_bytes;
  state->superblock.block_plain_bytes = kMinBlockPlainBytes;
  REQUIRE_OK(WriteSuperblock(env, path, state->superblock));
}

void RecompressionStore::AllowDeltas(BaseChooser& chooser) {
  base_chooser = &chooser;
  auto state = ReadSuperblock(env, path);
  REQUIRE_OK(state);
  state->superblock.incompat_features |= kIncompatDeltas;
  REQUIRE_OK(WriteSuperblock(env, path, state->superblock));
}

Result<std::unique_ptr<FileSystem>> RecompressionStore::Open(Env& on, bool read_only) const {
  FileSystemOptions options;
  options.store = path;
  options.segments = SealedSegments(on);
  options.read_only = read_only;
  options.commit_interval = std::chrono::hours(1);
  options.deletion_patience = deletion_patience;
  options.base_chooser = base_chooser;
  return FileSystem::Open(on, options);
}

void RecompressionStore::WriteFiles(FileSystem& fs, uint64_t first_seed, int count) {
  for (int i = 0; i < count; ++i) {
    const uint64_t seed = first_seed + static_cast<uint64_t>(i);
    const std::string name = fmt::format("file {}", seed);
    files[name] = RepetitiveBytes(seed, 60'000);
    WriteLargeFile(fs, name, files[name]);
  }
}

void RecompressionStore::RequireFiles(FileSystem& fs) const {
  for (const auto& [name, content] : files) {
    INFO(name);
    const auto inode = Resolve(fs, name);
    REQUIRE_OK(inode);
    const auto read = ReadFile(fs, *inode);
    REQUIRE_OK(read);
    const bool same = *read == content;
    REQUIRE(same);
  }
}

void RecompressionStore::RequireSound(Env& on) const {
  std::string found;
  CheckOptions options;
  options.store = path;
  options.segments = SealedSegments(on);
  options.data = true;
  options.copies = true;
  options.on_finding = [&found](const Finding& finding) {
    found += finding.code + " " + finding.path + ": " + finding.message + "\n";
  };
  REQUIRE_OK(CheckStore(on, options));
  REQUIRE(found == "");
}

void RecompressionStore::RequireOpensWhole(Env& on) const {
  RequireSound(on);
  for (const bool read_only : {true, false}) {
    auto fs = Open(on, read_only);
    REQUIRE_OK(fs);
    RequireFiles(**fs);
    REQUIRE_OK((*fs)->Close());
  }
  RequireSound(on);
  RequireStatistics(on);
}

void RecompressionStore::RequireStatistics(Env& on) const {
  const auto stats = ReadStoreStats(on, path);
  REQUIRE_OK(stats);
  KvStoreOptions kv_options;
  kv_options.path = MetadataPath(path);
  kv_options.ledger_path = LedgerPath(path);
  kv_options.mode = KvStoreOptions::Mode::kReadOnly;
  auto kv = OpenRocksDbStore(on, kv_options);
  REQUIRE_OK(kv);
  auto listing = SegmentsOf(on, path)->List();
  REQUIRE_OK(listing);
  uint64_t stored = 0;
  uint64_t awaiting = 0;
  for (const SegmentId id : listing->ids) {
    auto removed = (*kv)->Get(RemovedSegmentKey(id));
    REQUIRE_OK(removed);
    if (removed->has_value()) continue;  // removed at the next mount
    auto value = (*kv)->Get(SegmentKey(id));
    REQUIRE_OK(value);
    REQUIRE(value->has_value());
    auto record = SegmentRecord::Decode(**value);
    REQUIRE_OK(record);
    const uint64_t size = SegmentContent(on, path, id).size();
    stored += size;
    if (record->kind == 0 && !record->recompressed) awaiting += size;
  }
  REQUIRE(stats->stored_bytes == stored);
  REQUIRE(stats->awaiting_recompression_bytes == awaiting);
}

}  // namespace siltfs::testing
