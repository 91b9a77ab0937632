// Tests the salvage of damaged RocksDB files without RocksDB. The input is a table, a log, a
// MANIFEST, or the content of a block or record with a valid checksum. For any bytes, no change
// appears twice or out of order, and decoded changes are not larger than a block.
//
// The input: the kind of file or block, then its bytes.
#include <string>
#include <utility>
#include <vector>

#include "fs/rocksdb/log_salvage.h"
#include "fs/rocksdb/manifest_salvage.h"
#include "fs/rocksdb/rocksdb_store.h"
#include "fs/rocksdb/table_block.h"
#include "fs/rocksdb/table_salvage.h"
#include "store/base/coding.h"
#include "store/env/files.h"
#include "store/env/sim_env.h"
#include "tests/fuzz/fuzz_input.h"

namespace siltfs::testing {
namespace {

const std::string kFile = "/file";
const std::string kMetadata = "/meta";
constexpr size_t kMostPlainBytes = 64u << 20;

enum Kind : uint8_t {
  kTable,
  kLog,
  kPlainBlock,
  kProperties,
  kStoredBlock,
  kRecord,
  kEdit,
  kKinds
};

void MustAscend(const std::vector<StoredChange>& changes) {
  size_t bytes = 0;
  for (size_t i = 0; i < changes.size(); ++i) {
    MustHold(i == 0 || IsBefore(changes[i - 1], changes[i]), "changes ascend");
    bytes += changes[i].key.size() + changes[i].value.value_or("").size();
  }
  MustHold(bytes <= kMostPlainBytes, "changes have room in a block");
}

std::unique_ptr<SimEnv> WithFile(ByteView bytes) {
  auto env = std::make_unique<SimEnv>();
  auto file = Must(env->OpenFile(kFile, {.mode = OpenMode::kCreate}));
  MustHold(file->Write(0, bytes).ok(), "the file is written");
  return env;
}

void ReadTable(ByteView bytes) {
  const auto env = WithFile(bytes);
  auto table = Must(TableSalvage::Open(*env, kFile));
  StoredChange last;
  for (bool first = true; table->Valid(); table->Next(), first = false) {
    MustHold(first || IsBefore(last, table->change()), "changes ascend");
    last = table->change();
  }
  MustHold(table->lost_bytes() <= bytes.size(), "no more is lost than there was");
}

void ReadRecord(ByteView record) {
  ReadLoggedChanges(record, [&](const StoredChange& change) {
    MustHold(change.key.size() <= record.size(), "a key lies in its record");
  });
}

void ReadLog(uint64_t synced, ByteView bytes) {
  const auto env = WithFile(bytes);
  const auto file = Must(env->OpenFile(kFile, {.mode = OpenMode::kRead}));
  const LogSalvage read = Must(SalvageLog(*file, bytes.size(), synced, [&](ByteView record) {
    MustHold(record.size() <= bytes.size(), "a record lies in its log");
    ReadRecord(record);
    return true;
  }));
  MustHold(read.lost_bytes <= bytes.size(), "no more is lost than there was");
}

void ReadStoredBlock(ByteView bytes) {
  MustHold(FindAnyBlock(bytes) <= bytes.size(), "a block ends where the bytes do");
  const auto found = FindDataBlock(bytes);
  if (!found) return;
  MustHold(found->bytes <= bytes.size(), "a block ends where the bytes do");
  MustAscend(found->changes);
}

// The files that RocksDB makes from some changes, with tables and a log.
std::unique_ptr<SimEnv> SomeMetadata() {
  auto env = std::make_unique<SimEnv>(3);
  MustHold(env->CreateDirectory(kMetadata).ok(), "there is a place for metadata");
  KvStoreOptions options;
  options.path = kMetadata;
  options.ledger_path = "/ledger";
  options.mode = KvStoreOptions::Mode::kCreate;
  for (const char table : {'a', 'b'}) {
    const auto kv = Must(OpenRocksDbStore(*env, options));
    options.mode = KvStoreOptions::Mode::kOpen;
    std::vector<Mutation> mutations;
    for (int i = 0; i < 60; ++i) {
      const std::string key = table + std::to_string(i);
      mutations.push_back({key, std::string(static_cast<size_t>(i), 'v') + key});
    }
    mutations.push_back({"a1", std::nullopt});
    MustHold(kv->Write(mutations).ok(), "metadata is written");
    if (table == 'a') MustHold(kv->CloseCleanly().ok(), "metadata is closed");
  }
  return env;
}

std::string PlainBlock() {
  Encoder out;
  for (const char* key : {"key1", "key2"}) {
    out.U8(0)
        .U8(12)
        .U8(5)
        .Raw(std::string(key))
        .U64(uint64_t{7} << 8 | 1)
        .Raw(std::string("value"));
  }
  return out.U32(0).U32(1).Take();
}

std::string Properties() {
  const std::string name = "rocksdb.num.entries";
  Encoder out;
  out.U8(0).U8(static_cast<uint8_t>(name.size() + 8)).U8(1).Raw(name).U64(1).U8(77);
  return out.U32(0).U32(1).Take();
}

}  // namespace

void RunSalvage(FuzzInput input) {
  const auto kind = static_cast<Kind>(input.Number(1) % kKinds);
  const uint64_t synced = kind == kLog ? input.Number(2) : 0;
  const ByteView bytes = input.Take(input.remaining());
  switch (kind) {
    case kTable:
      return ReadTable(bytes);
    case kLog:
      return ReadLog(synced, bytes);
    case kPlainBlock:
      if (const auto changes = ParseDataBlock(bytes)) MustAscend(*changes);
      return;
    case kProperties:
      CountInProperties(bytes);
      return;
    case kStoredBlock:
      return ReadStoredBlock(bytes);
    case kRecord:
      return ReadRecord(bytes);
    default: {
      LiveFiles files;
      ApplyEdit(bytes, files);
      MustHold(files.tables.size() <= bytes.size(), "an edit names the tables it has");
    }
  }
}

std::vector<Bytes> FuzzSeeds() {
  std::vector<Bytes> seeds = {JoinInput({kPlainBlock}, AsBytes(PlainBlock())),
                              JoinInput({kProperties}, AsBytes(Properties()))};
  MustHold(ParseDataBlock(AsBytes(PlainBlock())).has_value(), "a seed is a block");
  const auto env = SomeMetadata();
  const std::vector<DirectoryEntry> entries = Must(env->ListDirectory(kMetadata));
  for (const DirectoryEntry& entry : entries) {
    const std::string path = JoinPath(kMetadata, entry.name);
    const std::string text = Must(ReadWholeFile(*env, path, kMostPlainBytes));
    const ByteView bytes = AsBytes(text);
    if (entry.name.ends_with(".sst")) {
      seeds.push_back(JoinInput({kTable}, bytes));
      seeds.push_back(JoinInput({kStoredBlock}, bytes));
    }
    const bool manifest = entry.name.starts_with("MANIFEST");
    if (!manifest && !entry.name.ends_with(".log")) continue;
    seeds.push_back(JoinInput({kLog, 0xff, 0xff}, bytes));
    const auto file = Must(env->OpenFile(path, {.mode = OpenMode::kRead}));
    const uint8_t kind = manifest ? kEdit : kRecord;
    Must(SalvageLog(*file, bytes.size(), bytes.size(), [&](ByteView record) {
      seeds.push_back(JoinInput({kind}, record));
      return true;
    }));
  }
  return seeds;
}

}  // namespace siltfs::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  siltfs::testing::RunSalvage(siltfs::testing::FuzzInput(data, size));
  return 0;
}
