#include "store_maker.h"

#include <algorithm>

#include "tests/support/catch.h"

namespace siltfs::testing {

IndexEntry NumberedEntry(uint64_t number, uint32_t version) {
  return {NameOf(number),
          {.segment = static_cast<SegmentId>(number + 1), .ordinal = version, .block_offset = 6}};
}

IndexEntry NumberedTombstone(uint64_t number) { return {NameOf(number), {}}; }

std::vector<IndexEntry> NumberedEntries(uint64_t first, uint64_t count, uint32_t version) {
  std::vector<IndexEntry> entries;
  for (uint64_t i = first; i < first + count; ++i) entries.push_back(NumberedEntry(i, version));
  return entries;
}

void FlipByte(Env& env, const std::string& path, uint64_t offset) {
  auto file = env.OpenFile(path, {.mode = OpenMode::kReadWrite});
  REQUIRE_OK(file);
  std::array<uint8_t, 1> byte{};
  REQUIRE_OK((*file)->Read(offset, byte));
  byte[0] ^= 0x40;
  REQUIRE_OK((*file)->Write(offset, byte));
  REQUIRE_OK((*file)->Sync());
}

std::shared_ptr<LogStore> StoreMaker::Log(std::span<const IndexEntry> entries) {
  const StoreFileId id{StoreKind::kLog, 0, next_id++};
  auto file = CreateStoreFile(env, kDirectory, id);
  REQUIRE_OK(file);
  auto log = std::make_shared<LogStore>(
      LogStore::Config{
          .id = id.id, .bucket_bits = bucket_bits, .name_hash = {kSecret}, .layout = layout},
      *file);
  for (const IndexEntry& entry : entries) REQUIRE(log->Insert(Hash(entry.name), entry, 0));
  if (log->HasOpenEntries()) log->SealPage(0);
  REQUIRE_OK(log->WriteOut());
  log->DropWritten();
  return log;
}

std::shared_ptr<const HashStore> StoreMaker::HashStoreOf(std::span<const IndexEntry> entries) {
  const auto log = Log(entries);
  const StoreFileId id{StoreKind::kHash, 0, next_id++};
  auto written = HashStore::WriteFrom(*log, env, kDirectory, id, throttle);
  REQUIRE_OK(written);
  REQUIRE_OK(written->file->Sync());
  auto store = HashStore::Open(env, kDirectory, id, layout);
  REQUIRE_OK(store);
  return *store;
}

std::shared_ptr<const RunStore> StoreMaker::RunOf(std::span<const IndexEntry> entries,
                                                  double runs_per_partition) {
  const auto log = Log(entries);
  const StoreFileId id{StoreKind::kHash, 0, next_id++};
  auto written = ConvertLog(*log, env, kDirectory, id, throttle,
                            {.sorted_runs = true, .runs_per_partition = runs_per_partition});
  REQUIRE_OK(written);
  REQUIRE_OK(written->file->Sync());
  auto store = OpenConverted(env, kDirectory, id, 0, layout);
  REQUIRE_OK(store);
  auto filtered = (*store)->WithFilter();
  REQUIRE_OK(filtered);
  auto run = std::dynamic_pointer_cast<const RunStore>(*filtered);
  REQUIRE(run != nullptr);
  return run;
}

size_t StoreMaker::EntriesIn(const FrozenFile& file, uint32_t page) const {
  alignas(kPageSize) std::array<uint8_t, kPageSize> bytes;
  REQUIRE_OK(file.file().Read(uint64_t{page} * kPageSize, bytes));
  size_t entries = 0;
  for (size_t i = 0; i < file.layout().slots_per_page(); ++i) {
    entries += IsHole(DecodeSlot(SlotOfPage(file.layout(), ConstPageBytes(bytes), i))) ? 0 : 1;
  }
  return entries;
}

std::shared_ptr<const SortedStore> StoreMaker::Sorted(std::vector<IndexEntry> entries) {
  const StoreFileId id{StoreKind::kSorted, 0, next_id++};
  auto writer = SortedStoreWriter::Create(
      env, kDirectory, id,
      {.expected_entries = entries.size(), .layout = kChunkSlots, .page_index = page_index},
      throttle);
  REQUIRE_OK(writer);
  const auto key = [&](const IndexEntry& entry) { return Key(entry.name); };
  std::sort(entries.begin(), entries.end(),
            [&](const IndexEntry& a, const IndexEntry& b) { return key(a) < key(b); });
  for (const IndexEntry& entry : entries) REQUIRE_OK((*writer)->Append(key(entry), Stored(entry)));
  REQUIRE_OK((*writer)->Finish());
  auto store = SortedStore::Open(env, kDirectory, id, 0);
  REQUIRE_OK(store);
  return *store;
}

}  // namespace siltfs::testing
